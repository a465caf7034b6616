"""Links to the same article in another language, which old pages list at their end and no reader sees.

Such a link is told from a title with a colon, "[[is:...]]" in a sentence, by its prefix, which must be the code of a
Wikipedia, and by its line, which holds nothing but such links, categories and templates.
"""

import re

from rag.corpus.wikitext.marks import DROPPED

# The languages that have, or had, a Wikipedia, with old codes that pages still use.
_CODES = """
aa ab ace ady af ak als alt am ami an ang ann anp ar arc arn ary arz as ast atj av avk awa ay az azb ba ban bar bat-smg
bbc bcl bdr be be-tarask be-x-old bew bg bh bi bjn blk bm bn bo bpy br bs btm bug bxr ca cbk-zam cdo ce ceb ch cho chr
chy ckb co cr crh cs csb cu cv cy cz da dag de dga din diq dk dsb dtp dty dv dz ee egl el eml en eo epo es et eu ext fa
fat ff fi fiu-vro fj fo fon fr frp frr fur fy ga gag gan gcr gd gl glk gn gom gor got gpe gsw gu guc gur guw gv ha hak
haw he hi hif ho hr hsb ht hu hy hyw hz ia iba id ie ig igl ii ik ilo inh io is it iu ja jam jbo jp jv ka kaa kab kbd
kbp kcg kg kge ki kj kk kl km kn knc ko koi kr krc ks ksh ku kus kv kw ky la lad lb lbe lez lfn lg li lij lld lmo ln lo
lrc lt ltg lv lzh mad mai map-bms mdf mg mh mhr mi min minnan mk ml mn mni mnw mo mos mr mrj ms mt mus mwl my myv mzn na
nah nan nap nb nds nds-nl ne new ng nia nl nn no nomcom nov nqo nr nrm nso nv ny oc olo om or os pa pag pam pap pcd pcm
pdc pfl pi pih pl pms pnb pnt ps pt pwn qu rm rmy rn ro roa-rup roa-tara rsk ru rue rup rw sa sah sat sc scn sco sd se
sg sgs sh shi shn shy si simple sk skr sl sm smn sn so sq sr srn ss st stq su sv sw syl szl szy ta tay tcy tdd te tet tg
th ti tig tk tl tly tn to tokipona tpi tr trv ts tt tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo vro wa war wo wuu
xal xh xmf yi yo yue za zea zgh zh zh-cfr zh-classical zh-cn zh-min-nan zh-tw zh-yue zu
"""
LANGUAGE_CODES = frozenset(_CODES.split())
# Wikis are recognised by the name of their database, "dewiki" or "zh_yuewiktionary".
_DATABASE = re.compile(r"([a-z]{2,12}(?:_[a-z_]{1,12})?)wik(?:i|tionary|isource|iquote|ibooks|inews|iversity|ivoyage)$")
# No plain link is in either, so that it makes no difference whether ``fast`` has replaced those: it replaces no link
# with a colon, and a template may hold the ones that it replaces.
_LINK = r"\[\[[^\[\]{}\n:]*:[^\[\]{}\n]*+\]\]"
_TEMPLATE = r"\{\{(?:[^{}\[\]\n]|\[\[[^\[\]{}\n]*+\]\])*+\}\}"
_LINE = re.compile(rf"\n(?:\}}\}})?+(?:[ \t{DROPPED}]*+(?:{_LINK}|{_TEMPLATE}))++[ \t{DROPPED}]*+(?=\n|\Z)")
_LANGUAGE_LINK = re.compile(r"\[\[[ \t]*+([A-Za-z]{2,9}(?:-[A-Za-z]{1,9}){0,2})[ \t]*+:")


def language_of(dbname: str) -> str:
    """The language code of the wiki whose database has this name; "" where the name says none.

    >>> language_of("dewiki"), language_of("zh_yuewiki"), language_of("simplewiki"), language_of("commonswiki")
    ('de', 'zh-yue', 'en', '')
    """
    found = _DATABASE.match(dbname)
    code = found.group(1).replace("_", "-") if found else ""
    if code == "simple":
        return "en"
    return code if code in LANGUAGE_CODES else ""


def language_links(text: str) -> frozenset[int]:
    """Where the links to other languages start. ``text`` begins with a newline.

    >>> sorted(language_links("\\n[[de:Lima]] [[Category:Peru]][[fr:Lima]] \\nSee [[is:Lima]]."))
    [1, 30]
    """
    if not any(link.group(1).lower() in LANGUAGE_CODES for link in _LANGUAGE_LINK.finditer(text)):
        return frozenset()
    return frozenset(
        link.start()
        for line in _LINE.finditer(text)
        for link in _LANGUAGE_LINK.finditer(text, line.start(), line.end())
        if link.group(1).lower() in LANGUAGE_CODES
    )
