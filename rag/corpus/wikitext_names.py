"""Templates by name, for those that need no code of their own. All names are lower case."""

# Templates that show their first argument.
_FIRST_ARGUMENT = """
abbr|abbrlink|aligned table|anchored text|arabic|as written|asiantitle|bdi|big|bigmath|bignum|block indent|
block quote|bold|center|centre|chem2|cjk|code|country|em|flag|flagcountry|flagdeco|flaglist|flagu|flatlist|gr|grc|
h:title|hanging indent|hebrew|hover|huge|iast|in5|indent|ipa-cen|isolate|italic correction|italics|kbd|kbd text|key|
key press|keypress|l|large|large numbers|larger|longitem|lrt|math|midsize|mono|mvar|nastaliq|native name|no wrap|
nobold|nobr|nobreak|noitalic|normal|normalwraplink|not a typo|notatypo|nowiki text|nowrap|nowraplinks|nq|okina text|
pie|plainlist|poem|polytonic|proper name|pslink|rtl|ruby|s|samp|sc|script/arabic|script/cyrl|script/hebrew|
script/nastaliq|section link|slink|small|smallcaps|smalldiv|smaller|smcaps|strike|strikethrough|strong|su|sub|
subscript|sup|superscript|text|tooltip|tq|tqi|tt|u|uline|underline|unicode|ushr|vanchor|var|verse|visible anchor|
wikt-lang|wkt|wp
"""
FIRST_ARGUMENT = tuple(name.strip() for name in _FIRST_ARGUMENT.replace("\n", "").split("|"))

# Templates that always show the same.
CONSTANTS = {
    "!": "|", "pipe": "|", "=": "=", "·": " · ", "•": " • ", "dot": " · ", "bull": " • ", "middot": " · ",
    "nbsp": " ", "spaces": " ", "space": " ", "thinsp": " ", "thin space": " ", "hsp": " ", "hair space": " ",
    "shy": "", "zwsp": "", "zwnj": "\u200c", "zwj": "\u200d", "wbr": "", "ndash": "–", "en dash": "–", "–": "–",
    "mdash": "—", "em dash": "—", "—": "—", "snd": " – ", "spnd": " – ", "spaced ndash": " – ",
    "spaced en dash": " – ", "dash": " – ", "snds": " – ", "mdashb": "—", "ndashb": "–", "smd": " — ",
    "spaced mdash": " — ", "\\": " / ", "slash": "/", "okina": "ʻ", "‘okina": "ʻ", "hamza": "ʾ", "ayin": "ʿ",
    "ayn": "ʿ", "prime": "′", "minus": "−", "times": "×", "±": "±", "degree": "°", "(": "{", ")": "}", "[": "[",
    "]": "]", "\"'": "\"'", "'\"": "'\"", "'-": "'", "'s": "'s", "quote mark": "\"", "' \"": "' \"", "yes": "Yes",
    "no": "No", "unknown": "Unknown", "n/a": "N/A", "won": "Won", "nominated": "Nominated", "tba": "TBA", "eqm": "⇌",
    "-\"": "\"", "pi": "π", "gamma": "γ", "radic": "√", "sup2": "²", "bce": "BCE", "numero": "No.",
    "euro symbol": "€", "ell": "ell", "...": "...", "break": " ", "crlf": "\n", "paragraph": "\n\n", "par": "\n\n",
    "pb": "\n\n",
}  # fmt: skip

# Templates that show nothing which a reader of the running text would miss: boxes, navigation, maintenance, notes,
# citations, pronunciation, coordinates, pictures and the frames of tables and columns.
_INVISIBLE = """
!!|-|about|about2|according to whom|advert|afd|ahnentafel|ahnentafel bottom|ahnentafel top|all plot|allmusic|
alphanumeric toc|anachronism|anchor|anchors|annotated image|article for deletion|arxiv|asin|attribution needed|audio|
audio-ipa|audio-nohelp|authority control|auto images|automatic taxobox|bar box|bar chart|bar percent|bartable|bbl|
better source|bibcode|book bar|bots|bottom|box start|brick chart|by whom|c-span|campaignbox|cbignore|cfd|chart|
chart bottom|chart top|chart/end|chart/start|chembox|chronology citation needed|citation|citation needed|
citation needed span|citation style|citation-needed|citations|cite|cite needed|clade|cladex|cladogram|
clarification needed|clarify|clarifyme|cleanup|cleanup-link rot|clear|clear left|clear right|climate chart|
climate chart/celsius|clr|cn|cnote|cob|col div|col-2|col-3|col-4|col-5|col-begin|col-begin-small|col-break|col-end|
col-start|colbegin|colend|collapse bottom|collapse top|column|columns-start|commons|commons and category|commons cat|
commons category|commons category inline|commons category-inline|commons-inline|commonscat|commonscat-inline|
commonscatinline|compact toc|compacttoc8|composition bar|confusing|context|contradict|contradict-inline|
contradictory inline|coor|coord|coord missing|coords|copy edit|copyedit|correct title|cot|cref|cref2|css image crop|
curlie|dablink|dagger key|db|dead link|deadlink|decrease|decreasepositive|defaultsort|definition needed|demography|
details|disambiguation needed|discogs artist|discuss|displaytitle|disputed|disputed inline|disputed section|
disputed-inline|distinguish|div|div col|div col end|div end|div-end|divcol|dmoz|dn|doi|double image|down|drugbox|
dubious|efn|efn-lr|efn-ua|empty section|end|end box|end div col|endflatlist|endplainlist|engvar|engvarb|enpr|eol|
episode list|esp|essay-like|example farm|example needed|examples|expand|expand inline|expand section|expert|
external image|external links|external media|facebook|fact|failed verification|familytree|familytree/end|
familytree/start|featured article|featured list|find a grave|find sources|findagrave|findsources|flag icon|
flagathlete icon|flagicon|flagicon image|footnote|for|for2|fossil range|fs end|fs mid|fs player|fs start|full|
full citation needed|full name needed|fullpagename|further|further information|gain|gallery|gbif|geobox|
geographic location|geological range|globalize|gnf protein box|gocein use|good article|google books|google maps|
googlebooks|graph|graph:chart|gutenberg|gutenberg author|hangon|harvid|harvrefs|hatnote|hidden|hidden begin|
hidden end|historical populations|horizontal toc|how|howto|hs|hsh|hsn|iep|image|image array|image frame|image label|
image label begin|image label end|imageframe|imdb|imdb name|imdb title|importance section|in lang|in our time|
in popular culture|in use|inappropriate tone|inconsistent|inconsistent citations|increase|increasenegative|index|
inflation-fn|inflation-year|inflation/fn|instagram|internet archive author|ipa|ipa-all|ipablink|ipac|ipac-en|ipalink|
isbn|issn|italic title|italictitle|itis|jargon-inline|jstor|largest cities|lccn|lead missing|lead rewrite|
lead too long|lead too short|library resources about|library resources box|librivox author|librivox book|linkrot|
listen|location map|location map many|location map+|location map~|long fossil range|lopsided|loss|lowercase|
lowercase title|lsj|main|main article|main list|manual|merge|merge from|merge to|mesh|mid|more|more citations needed|
more footnotes|multicol|multicol-break|multicol-end|multiple image|multiple issues|musicbrainz artist|myspace|navbox|
navbox with collapsible groups|navboxes|ncbi taxon|ndb|neutrality|nndb|nndb name|no footnotes|no more links|nobots|
nochange|noflag|noinclude|noindex|nom|non sequitur|nonspecific|normdaten|not to be confused with|notability|note|
note label|notelist|notelist-lr|notelist-ua|notetag|ntsh|numbers missing|oclc|official|official site|official website|
ol|openlibrary id|opinion|or|or-inline|original research|original research inline|orphan|other people|other places|
other uses|other uses of|other uses2|otheruses|outdated|overly detailed|page needed|pagename|pages needed|panorama|
para|pbb|peacock term|perseus|persondata|photo montage|photomontage|phylogeny|pie chart|plainlist end|plot|pmc|pmid|
portal|portal bar|portal inline|portal-inline|portals|pov|pov statement|pov-statement|pp|primary source inline|
primary source-inline|primary sources|prod|profit|pron|pron-en|pronunciation|prose|protbox|protected|qualify evidence|
quantify|quote box|quotebox end|r|random picture|recentism|redirect|redirect-distinguish|redirect2|redirect3|redr|ref|
ref label|ref-|refbegin|refend|references|refideas|refimprove|refimprove section|reflabel|reflist|reflist-talk|refn|
refs|refstart|registration required|relevance inline|relevant|respell|rewrite|rp|s-end|s-start|script error|section|
sections|see|see also|seealso|self-published inline|self-reference|selfref|semiprotected|sep|sep entry|sfb|sfn|sfnm|
sfnmp|sfnp|sfnref|ship event row|short description|shortcut|sidebar|similar names|sister links|sister project|
sister project links|sister-inline|sisterlinks|snac|sort key|sortname key|speciesbox|specify|split|spoken wikipedia|
spoken wikipedia-2|spoken wikipedia-3|spoken wikipedia-4|spoken wikipedia-5|sps|stack|stack begin|stack end|starbox|
start|start box|startplainlist|steady|story|subject bar|subscription|subscription required|subspeciesbox|succession|
succession box|superimpose|syn|synthesis inline|systemic bias|tall image|taxobox|technical|technical reasons|tfd|tfm|
time needed|time series|title|tl|tlp|tlx|toc|toc left|toc limit|toc right|tocleft|toclimit|tocnestright|tocright|tone|
too long|tooshort|top|track listing|tracklist|tree list|tree list/end|triple image|trivia|twitter|unbalanced|
under construction|underlinked|undue inline|undue-inline|unreferenced|unreferenced section|unreliable source|
unreliable source?|up|update|update after|update inline|update-inline|us census population|uscensuspop|usdict|use|
vague|vcite|verification needed|verify|verify source|very long|vn|vr|wayback|weasel|weasel inline|weasel-inline|
weather box|webarchive|webcite|what|when|where|which|who|whom|why|wide image|wikiatlas|wikibooks|wikibooks-inline|
wikicite|wikidata|wikify|wikinews|wikinews category|wikipedia book|wikipedia books|wikipedia-adminnotice|
wikipedia-books|wikiquote|wikiquote-inline|wikisource|wikisource author|wikisource-inline|wikisource1911enc|
wikisourcelang|wikispecies|wikispecies-inline|wikiversity|wikivoyage|wikivoyage-inline|wiktionary|wiktionary-inline|
worldcat id|worldcat subject|worldview|year|year needed|youtube
"""
INVISIBLE = frozenset(name.strip().lower() for name in _INVISIBLE.replace("\n", "").split("|"))
INVISIBLE_PREFIXES = (
    "infobox", "navbox", "taxobox", "cite ", "cite-", "vcite", "vancite", "ipa-", "ipac-", "pp-", "r from", "r to",
    "use dmy", "use mdy", "use ", "about-", "wikiproject", "campaignbox", "user ", "s-", "location map", "chembox",
    "geobox", "drugbox", "automatic ", "speciesbox", "redirect", "other uses", "refimprove", "cleanup", "coord",
    "harvs", "familytree", "disambig", "hndis", "geodis", "set index", "surname", "given name", "stack", "col-",
    "spoken ", "jct", "jctint", "imagemap", "commons", "wikisource", "family name", "#invoke", "#tag", "#section",
    "#related", "#babel", "bartable", "article issues", "countries of", "largest ", "timeline", "graphical timeline",
    "football kit", "isbnt", "medal", "chart", "sidebar",
)  # fmt: skip
INVISIBLE_SUFFIXES = (
    "-stub", " stub", " sidebar", " topics", " navbox", " infobox", " icon", " footer", " series", "-footer",
    " navigation",
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
