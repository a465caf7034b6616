"""Templates by name, for those that need no code of their own. All names are lower case."""

from rag.corpus.wikitext.marks import JOINED

# Templates that show their first argument.
_FIRST_ARGUMENT = """
!xt|-r|abbr|abbrlink|acronym|afl year|all caps|allcaps|anli|annotated link|arabic|armenian|as written|asiantitle|au|
aut|auth|avoid wrap|baseball year|bdi|bengali|bi|big|bigmath|bignum|block indent|block quote|blockindent|bold|by|
cast list|cast listing|castlist|center|centre|century link|cfl year|cflseason|cfly|char|chem compound|chem name|chem2|
citation needed span|cjk|cjkv|cn-span|code|coptic|cuneiform|decade link|defn|del|devanagari|dfn|drop cap|drop initial|
dropcap|dropinitial|ec number|em|ethiopic|flatlist|fontsize|gdef|georgian|glossary definition|glossary term|gothic|gr|
grc|gterm|hanging indent|hangul|hanja|hanzi|hat|hebrew|highlight|highlight round|hira|hover|huge|iast|initial|
ipa fonts|iso 639|iso 639 name|isolate|italic|italic correction|italics|italics correction|itco|ja|jpn|kana|kanji|
katakana|kbd|key|khmer|ko|l|large|large numbers|larger|link if exists|longitem|lrt|lurs|lus|lw|math|mathbb|mathbf|
mathcal|midsize|mlb year|mlby|mono|mvar|nastaliq|nfl year|nflseason|nfly|nihongo2|no bold|no break|no italic|no link|
no redirect|no wrap|nobold|nobr|nobreak|noflag|noitalic|nolink|noredirect|normal|normalwraplink|nowrap|nowrap2|
nowraplinks|nq|old persian|overbar|overline|overscore|phoenician|physics particle|pie|plainlist|poem|poemtext|
political party|polytonic|proper name|pslink|pxt|reference needed|refnec|refneed|rtl|runes|runic|rws|rwsa|rwsa2|s|samp|
sans|sans-serif|sansserif|sc|script/arabic|script/cyrl|script/hebrew|script/nastaliq|sentence case|serif|small|
small caps|smallcaps|smallcaps all|smalldiv|smaller|smc|smcaps|span|specify span|sr-latn|stn|stnlnk|strike|strikeout|
strikethrough|strong|sub|subatomic particle|subatomicparticle|subscript|syriac|talkquote|tamil|term|text underline|
thai|tibetan|tifinagh|title case|titlecase|tooltip|tooltips|tq|tqb|tqi|tt|u|uline|underbar|underline|unicode|urdu|ushr|
vanchor|var|varserif|vec|vector|verse|visible anchor|wikilink|wkt|world series year|wp|ws year|wsy|xt|xtn|year link|yl|
zhi
"""
FIRST_ARGUMENT = tuple(name.strip() for name in _FIRST_ARGUMENT.replace("\n", "").split("|"))

# Templates that always show the same.
CONSTANTS = {
    "!": "|", "pipe": "|", "=": "=", "·": " · ", "•": " • ", "dot": " · ", "bull": " • ", "middot": " · ",
    "nbsp": " ", "spaces": " ", "space": " ", "thinsp": " ", "thin space": " ", "hsp": " ", "hair space": " ",
    "shy": JOINED, "zwsp": JOINED, "zwnj": "\u200c", "zwj": "\u200d", "wbr": JOINED, "ndash": "–",
    "en dash": "–", "–": "–",
    "mdash": "—", "em dash": "—", "—": "—", "snd": " – ", "spnd": " – ", "spaced ndash": " – ",
    "spaced en dash": " – ", "dash": " – ", "snds": " – ", "mdashb": "—", "ndashb": "–", "smd": " — ",
    "spaced mdash": " — ", "\\": " / ", "slash": "/", "okina": "ʻ", "‘okina": "ʻ", "hamza": "ʾ", "ayin": "ʿ",
    "ayn": "ʿ", "(": "{", ")": "}", "[": "[", "]": "]", "\"'": "\"'", "'\"": "'\"", "'-": "'", "'s": "'s",
    "quote mark": "\"", "' \"": "' \"", "eqm": "⇌",
    "-\"": "\"", "pi": "π", "gamma": "γ", "sup2": "²", "euro symbol": "€", "ell": "ell",
    "...": "...", "break": " ", "crlf": "\n", "paragraph": "\n\n", "pb": "\n\n", "in5": " ",
    "indent": " ", "pad": " ", "gap": " ", "quad": " ", "ensp": " ", "emsp": " ", "en space": " ", "em space": " ",
    "nnbsp": " ", "figure space": " ", "fsp": " ", "figs": " ", "nb5": " ", "nb10": " ", "sp": " ", "hairsp": " ",
    "thinspace": " ", "0": " ", "zero width space": JOINED, "zero width joiner": "\u200d",
    "zero width non-joiner": "\u200c", "soft hyphen": "", "softhyphen": "", "nbhyph": "-", "nbhyphen": "-",
    "nbh": "-", "hyphen": "-", "nbdash": "–", "nbndash": "–", "spaced em dash": " — ", "sdash": " – ",
    "nsndns": " – ", "spacedmdash": " — ", "spacedndash": " – ", "emdash": "—", "endash": "–", "bullet": " • ",
    "spaced middot": " · ", "spaced bullet": " • ", "·w": " · ", "•w": " • ", "nbdot": " · ", "interpunct": "·",
    "dotsep": " · ", "vert": "|", "vertical bar": "|", "ellipsis": "…", "ldots": "…", "omission": "[...]",
    "apostrophe": "'", "`": "`", "\"-": "\"", "-'": "'", "- '": "'", "\"'-": "\"'", "'-\"": "'\"",
    "double+single": "\"'", "single+double": "'\"", "space+single": " '", "space+double": " \"", "single+space": "' ",
    "!(": "[", ")!": "]",
    "cdot": "⋅", "sdot": "⋅",
    "infin": "∞", "infinity": "∞",
    "infty": "∞", "sum": "∑", "section sign": "§", "pilcrow": "¶", "number sign": "#", "hash": "#", "hash-tag": "#",
    "at sign": "@", "@": "@", "asterisk": "*", "dagger": "†", "†": "†", "ddagger": "‡", "double-dagger": "‡",
    "double dagger": "‡", "‡": "‡", "copy": "©", "check": "✓", "tick": "✓", "checkmark": "✓",
    "cross": "✗", "x mark": "✗", "aye": "Yes", "nay": "No", "alpha": "α", "beta": "β", "delta": "δ", "epsilon": "ε",
    "zeta": "ζ", "eta": "η", "theta": "θ", "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ",
    "rho": "ρ", "sigma": "σ", "tau": "τ", "upsilon": "υ", "varphi": "φ", "psi": "ψ",
    "omega": "ω", "hbar": "ħ", "aleph": "ℵ", "alef": "ℵ", "solar mass": "M☉", "solar radius": "R☉",
    "solar luminosity": "L☉", "earth mass": "M⊕", "earth radius": "R⊕", "jupiter mass": "MJ", "jupiter radius": "RJ",
    "co2": "CO2", "h2o": "H2O", "o2": "O2", "n2": "N2", "ch4": "CH4", "nh3": "NH3", "so2": "SO2", "nowrap begin": "",
    "nowrap end": "", "th": "th", "wwi": "World War I",
    "1/2": "1/2", "1/3": "1/3", "2/3": "2/3", "1/4": "1/4", "3/4": "3/4", "1/8": "1/8", "3/8": "3/8",
    "5/8": "5/8", "7/8": "7/8", "wwii": "World War II", "ww1": "World War I", "ww2": "World War II",
}  # fmt: skip

# Templates that show nothing which a reader of the running text would miss: boxes, navigation, maintenance, notes,
# citations, pronunciation, coordinates, pictures and the frames of tables and columns.
_INVISIBLE = """
!!|iep|#default|-|16teambracket|1911|4teambracket|8teambracket|abortionlawsmap|about|about2|about3|according to source|
according to whom|advert|afd|africa in topic|africa topic|ahnentafel|ahnentafel bottom|ahnentafel top|
ahnentafel-compact4|ahnentafel-compact5|aired episodes|alabama county labelled map|alabama weatherbox|album chart|
album ratings|albumchart|algorithm begin|algorithm end|algorithm-begin|algorithm-end|all plot|allmusic|
alphabetical toc|alphanumeric toc|also|ambox|americas topic|anachronism|anchor|anchorencode|anchors|
article for deletion|article for deletion/dated|arxiv|asbox|asia topic|asin|ast|atp|attached kml|attribution needed|
audio help|audio-pipe|authority control|auto images|autobiography|automatic taxobox|bar box|bar chart|bar percent|
barlabel|basketballbox|bbl|better source|bibcode|blp sources|blp unsourced|blpsources|book bar|books-inline|bots|
bottom|box start|br cat|brick chart|bronze medal|bronze03|bronze3|bs|bs-map|bsto|bugzilla|buzz inline|by whom|c-span|
calendar|campaignbox|cantorion|cbignore|cc-notice|certification table bottom|certification table entry|
certification table top|cfd|charmap|chart|chart bottom|chart top|chart/end|chart/start|chembox|chess diagram|
chess diagram small|chronology citation needed|cia world factbook|cia world factbook link|citation bot|citation needed|
citation needed lead|citation style|citation-needed|citations|citations broken|citations missing|cite|cite eb1911|
cite needed|cite quote|cite sources|cite-section|citequote|citestyle|citizendium|citizendium paragraph|clade|
clade labels|cladex|cladogram|cladogram2|clarification needed|clarify|clarifyme|cleanup|cleanup-link rot|clear|
clear left|clear right|climate chart|climate chart/celsius|close paraphrasing|closed access|clr|cmbox|cn|cn lead|cnote|
cob|coi|col div|col-2|col-3|col-4|col-5|col-begin|col-begin-small|col-break|col-end|col-start|colbegin|colend|
collapse bottom|collapse top|color box|color sample|colour box|column|columns-start|commons|commons and category|
commons cat|commons category|commons category inline|commons category-inline|commons-inline|commonscat|
commonscat-inline|commonscatinline|compact toc|compact toc8|compacttoc8|composition bar|condense|conflict of interest|
confusing|contains arabic text|contains chinese text|contains cyrillic text|contains indic text|contains japanese text|
contains korean text|contains special characters|contains tifinagh text|context|contradict|contradict-inline|
contradictory inline|coor|coord|coord missing|coords|copy edit|copyedit|copypaste|copyvio|correct title|cot|cref|cref2|
css image crop|ct-box|curlie|current event|current related|currentdate|dablink|dads|dagger key|daviscup player|db|
db-meta|de icon|dead link|deadlink|decrease|decreasepositive|defaultcenter|defaultsort|definition needed|demography|
descendants|details|details2|details3|disambiguation needed|discogs artist|discuss|displaytitle|disputed|
disputed inline|disputed section|disputed-inline|distinguish|distinguish2|div|div col|div col end|div end|div-end|
divcol|djvu|dmoz|dn|dnb|docx|doi|double image|down|drugbox|dubious|dyktalk|eb1911|eb1911 poster|efn|efn-lr|efn-ua|
elect|election box begin|election box candidate|election box candidate with party link|election box end|
election box gain with party link|election box hold with party link|election box majority|election box turnout|
elucidate|email|empty section|end|end box|end div col|end tab|endflatlist|endplainlist|endtable|engvar|engvarb|enpr|
eol|eom|episode table|episodes|es icon|essay|essay-like|europe topic|example farm|example needed|examples|expand|
expand acronym|expand chinese|expand french|expand german|expand inline|expand italian|expand japanese|expand language|
expand portuguese|expand russian|expand section|expand spanish|expert|external image|external links|external media|
externallinks|facebook|fact|failed verification|fake heading|family tree|familytree|familytree/end|familytree/start|
fansite|fb cl footer|fb cl header navbar|fb cl team|featured article|featured list|film ratings|find a grave|
find sources|findagrave|findsources|flag deco|flag icon|flagathlete icon|flagbig|flagdeco|flagicon|flagicon image|
flagicon-big|flowchart|flv|fmbox|foldoc|football box|footballbox|footballbox collapsible|footnote|for|for2|for3|
formerly|fossil range|fr icon|free access|fs end|fs mid|fs player|fs start|full|full citation|full citation needed|
full name needed|fullpagename|further|further cleanup|further explanation needed|further information|gain|gallery|
game guide|gbif|geobox|geographic location|geogroup|geogroup template|geological range|globalize|globalize/english|
globalize/uk|globalize/us|glossary|glossary begin|glossary end|glossary of|gnf protein box|go diagram|goal|gocein use|
gold medal|gold01|gold1|good article|good topics|goodreads|goodreads author|google books|google maps|googlebooks|
govpubs|graph|graph:chart|guardian topic|gutenberg|gutenberg australia|gutenberg author|hangon|harvid|harvrefs|hatnote|
hcards|hidden begin|hidden end|historical population|historical populations|hoax|horizontal toc|how|howto|hs|hsh|hsn|
icsc|image|image array|image frame|image label|image label begin|image label end|imageframe|imbox|imdb|imdb character|
imdb company|imdb episode|imdb event|imdb name|imdb title|importance inline|importance section|importance-inline|imslp|
in creation|in lang|in our time|in popular culture|in title|in use|in-universe|inadequate lead|inappropriate tone|
include-nasa|include-usgov|incomprehensible inline|inconsistent|inconsistent citations|increase|increasenegative|index|
inflation year|inflation-fn|inflation-year|inflation/fn|inflation/year|infobox mapframe|inpho|instagram|
internet archive author|internet archive short film|interwiki conflict|intitle|isbn|isfdb|isfdb name|isfdb title|issn|
it icon|italic title|italictitle|itf|itf profile|itis|iucn|ja icon|jargon-inline|jewish encyclopedia|jstor|kml|
language icon|language-icon|languageicon|largest cities|latin alphabet|latin letter info|lccn|lead extra info|
lead missing|lead rewrite|lead too long|lead too short|legend0|letter other reps|library resources about|
library resources box|librivox author|librivox book|link fa|link ga|link language|linkrot|listen|location map|
location map many|location map+|location map~|long fossil range|long plot|look from|lookfrom|lopsided|loss|lowercase|
lowercase title|lsj|mactutor|mactutor biography|mahjong|mailto|main|main article|main category|main list|manual|
manual section|maplink|mathgenealogy|mathworld|mbox|medcn|medical citation needed|merge|merge from|merge to|mergefrom|
mergeto|mesh|mid|mlbplayer|monthheader|more citations needed|more footnotes|more footnotes needed|msw3|msw3 carnivora|
msw3 tubulidentata|multicol|multicol-break|multicol-end|multiple image|multiple images|multiple issues|
musicbrainz artist|myspace|nat fs break|nat fs end|nat fs g player|nat fs g start|nat fs player|nat fs start|navbox|
navbox with collapsible groups|navboxes|ncbi taxon|ndb|neutrality|new page|nl icon|nlab|nndb|nndb name|no citations|
no footnotes|no more links|no plot|nobots|nochange|nofootnotes|noinclude|noindex|non sequitur|
non-primary source needed|nonprimary source needed|nonspecific|normdaten|nosubst|not to be confused with|notability|
note|note label|note list|notelist|notelist-lr|notelist-ua|notelist2|notenglish|notes|noteslist|notetag|ntsh|
numbers missing|nutshell|nyttopic|oceania topic|oclc|oed|official|official site|official url|official website|
ol author|ombox|one source|onesource|open access|openlibrary id|opinion|or|or-inline|orig research|original research|
original research inline|orphan|osm location map|osmrelation|osmrelation-inline|other people|other places|other uses|
other uses of|other uses2|otheruses|outdated|outdated as of|overly detailed|page needed|page number|
page range too broad|pagename|pagenumber|pages needed|panorama|para|paraphyletic group|paywall|pbb|pd old text|
pd-notice|pdf|pdf link|pdflink|peacock|peacock term|pen.|pengoal|perseus|persondata|phantom|philpapers|photo montage|
photomontage|phylogeny|pie chart|pl icon|plain row headers|plainlist end|planetmath|planetmath reference|plot|
plot summary|pmc|pmid|population|portal|portal bar|portal inline|portal-bar|portal-inline|portals|pov|pov statement|
pov-statement|pp|pp-move|pp-semi|pp-vandalism|primary source inline|primary source-inline|primary sources|
primarysources|prod|prod blp|profit|promotion inline|promotional source|prone to spam|pronunciation|proposed deletion|
proposed deletion/dated|prose|protbox|protected|pseudo-heading|pt icon|qualify evidence|quantify|quotebox end|r|
rail interchange|rail-interchange|random picture|recent death|recentism|recently revised|redirect|redirect-distinguish|
redirect2|redirect3|redr|ref|ref label|ref-|ref-fr|ref-lang|refbegin|refend|reference|reference list|references|
references-small|refgroup|refideas|refimprove|refimprove blp|refimprove section|reflabel|reflist|reflist-talk|reflist2|
refn|refs|refs-start|refstart|registration|registration required|related|related articles|relevance inline|relevant|
research help|respell|rewrite|rint|rough translation|round16|round8|row hover highlight|rp|rtoc|ru icon|rugbybox|s-end|
s-start|scholarpedia|screen reader-only|script error|season needed|section|sections|see|see also|seealso|
self-published inline|self-reference|selfref|semiprotected|sent off|sep|sep entry|series overview|sfb|sfdb|sfn|sfnm|
sfnmp|sfnp|sfnref|shogi diagram|short description|short pages monitor|shortcut|sidebar|silver medal|silver02|silver2|
similar names|single chart|singlechart|sister links|sister project|sister project links|sister-inline|sisterlinks|
skyline|snac|sort key|sortname key|source list|source-attribution|spaceflight crew|speciesbox|specify|spelling|split|
split section|spoken wikipedia|spoken wikipedia boilerplate|spoken wikipedia-2|spoken wikipedia-3|spoken wikipedia-4|
spoken wikipedia-5|springer|sps|sronly|stack begin|stack end|starbox|start|start box|start tab|startplainlist|
starttable|statedept|steady|sticky header|sticky header start|sticky table start|story|subject bar|suboff|subon|subreq|
subscription|subscription required|subspeciesbox|succession|succession box|summarize section|superimpose|sv icon|syn|
synthesis inline|systemic bias|table alignment|talk header|talkheader|tall image|taxobox|technical|technical reasons|
television season|tennishof|tfd|tfm|third-party inline|third-party source needed|thisdate|time needed|time series|
time-sensitive|title|title missing|tl|tlp|tlx|tmbox|toc|toc hidden|toc left|toc limit|toc right|tocleft|toclimit|
tocmid|tocnestright|tocright|tone|too long|tooshort|top|track listing|tracklist|translate|translated page|tree list|
tree list/end|triple image|trivia|twitter|two other uses|unbalanced|unblock|under construction|under discussion inline|
underlinked|undue|undue inline|undue weight|undue weight section|undue-inline|unencyclopedic|unreferenced|
unreferenced section|unreliable medical source|unreliable source|unreliable source?|unsourced|up|update|update after|
update inline|update needed|update-inline|url-access|us census population|usarticlesofconfederationsig|uscensuspop|
usdict|use|usgovernment|vague|vcite|verification needed|verify|verify credibility|verify source|verify spelling|
very long|very long section|vevent|vg reviews|video game reviews|vn|volume needed|wayback|weasel|weasel inline|
weasel-inline|weather box|weatherbox|webarchive|webcite|webslice-begin|webslice-end|welcome|what|when|where|which|who|
whom|why|wide image|wikiatlas|wikibooks|wikibooks-inline|wikibreak|wikicite|wikidata|wikidata-inline|wikify|wikilivres|
wikimedia|wikinews|wikinews category|wikinews-inline|wikinewspar|wikipedia book|wikipedia books|wikipedia-adminnotice|
wikipedia-books|wikiquote|wikiquote-inline|wikisource|wikisource author|wikisource-inline|wikisource1911enc|
wikisourcelang|wikispecies|wikispecies-inline|wikitable|wikiversity|wikivoyage|wikivoyage-inline|wiktionary|
wiktionary-inline|worldcat id|worldcat subject|worldview|wrongtitle|wta|xls|year|year dab|year in topic|year nav|
year needed|yel|yel card|youtube|z148
"""
INVISIBLE = frozenset(name.strip().lower() for name in _INVISIBLE.replace("\n", "").split("|"))
INVISIBLE_PREFIXES = (
    "infobox", "navbox", "taxobox", "cite ", "cite-", "vcite", "vancite", "pp-", "r from", "r to",
    "use dmy", "use mdy", "use ", "about-", "wikiproject", "campaignbox", "user ", "location map", "chembox",
    "geobox", "drugbox", "automatic ", "speciesbox", "redirect", "other uses", "refimprove", "cleanup", "coord",
    "familytree", "disambig", "hndis", "geodis", "set index", "surname", "given name", "col-",
    "spoken ", "jctint", "imagemap", "commons", "wikisource", "family name", "#invoke", "#tag", "#section",
    "#related", "#babel", "bartable", "article issues", "countries of", "largest ", "timeline", "graphical timeline",
    "football kit", "isbnt", "medal", "chart", "sidebar", "flagicon", "expand ", "election box", "nat fs", "msw3",
    "globalize", "contains ", "flag icon", "efs ", "merge", "multiple issues", "certification table",
    "s-ach", "s-aft", "s-ben", "s-bef", "s-break", "s-bus", "s-civ", "s-cul", "s-dip", "s-edu", "s-end", "s-fam",
    "s-fic", "s-gov", "s-hon", "s-hou", "s-inc", "s-jou", "s-leg", "s-line", "s-mil", "s-mus", "s-new", "s-non",
    "s-note", "s-npo", "s-off", "s-other", "s-par", "s-ppo", "s-pre", "s-prec", "s-rail", "s-reg", "s-rel", "s-roy",
    "s-sports", "s-start", "s-ttl", "s-tul", "s-vac",
)  # fmt: skip
# Those that no language has for anything else; elsewhere the English prefixes and suffixes are words of the language.
INVISIBLE_PREFIXES_EVERYWHERE = (
    "infobox", "navbox", "taxobox", "cite ", "coord", "location map", "geobox", "#invoke", "#tag", "#section",
    "#related", "#babel",
)  # fmt: skip
INVISIBLE_SUFFIXES = (
    "-stub", " stub", " sidebar", " topics", " navbox", " infobox", " icon", " footer", " series", "-footer",
    " navigation", " weatherbox", "-stub2", " start box", " start boxes", " succession box", "-inline",
)  # fmt: skip

# What {{track gauge}} shows for its usual codes.
TRACK_GAUGES = {
    "sg": "1,435 mm (4 ft 8+1/2 in)", "1435mm": "1,435 mm (4 ft 8+1/2 in)", "4ft8.5in": "4 ft 8+1/2 in (1,435 mm)",
    "1000mm": "1,000 mm (3 ft 3+3/8 in)", "metre": "1,000 mm (3 ft 3+3/8 in)", "1067mm": "1,067 mm (3 ft 6 in)",
    "3ft6in": "3 ft 6 in (1,067 mm)", "cape": "3 ft 6 in (1,067 mm)", "1520mm": "1,520 mm (4 ft 11+27/32 in)",
    "1524mm": "1,524 mm (5 ft)", "5ft": "5 ft (1,524 mm)", "1600mm": "1,600 mm (5 ft 3 in)",
    "5ft3in": "5 ft 3 in (1,600 mm)", "1668mm": "1,668 mm (5 ft 5+21/32 in)", "1676mm": "1,676 mm (5 ft 6 in)",
    "5ft6in": "5 ft 6 in (1,676 mm)", "600mm": "600 mm (1 ft 11+5/8 in)", "610mm": "610 mm (2 ft)",
    "2ft": "2 ft (610 mm)", "750mm": "750 mm (2 ft 5+1/2 in)", "760mm": "760 mm (2 ft 5+15/16 in)",
    "762mm": "762 mm (2 ft 6 in)", "2ft6in": "2 ft 6 in (762 mm)", "914mm": "914 mm (3 ft)", "3ft": "3 ft (914 mm)",
    "950mm": "950 mm (3 ft 1+3/8 in)",
}  # fmt: skip
