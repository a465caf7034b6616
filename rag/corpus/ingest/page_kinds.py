"""What a page of a wiki is: an article, a redirect, a disambiguation page, a list, or of another namespace."""

import re
from typing import Literal

from rag.config import PassageConfig
from rag.records import Page

PageKind = Literal["articles", "redirects", "disambiguation", "lists", "other_namespaces"]

# {{disambiguation}} and the names it goes by, redirects to it and its special forms.
_ENGLISH = (
    "1la|2cc|2la|3cc|3la|4cc|4la|airport disambig|airport disambiguation|biology disambiguation|"
    "call sign disambiguation|callsigndis|chinese title disambiguation|chinesetitledisambig|dab|dab cleanup|"
    "dabpage|dbig|disam|disamb|disambig|disambig cleanup|disambig-cleanup|disambiguation|disambiguation cleanup|"
    "disambiguation page|genus disambig|genus disambiguation|geo-dis|geodab|geodis|hndab|hndis|hndis-cleanup|"
    "hospital disambiguation|hospitaldis|human name disambiguation|letter disambiguation|"
    "letter-number combination disambiguation|letter-numbercombdisambig|mathdab|mathdisambig|"
    "mathematical disambiguation|mil-unit-dis|military unit disambiguation|music disambiguation|"
    "number disambiguation|numberdis|opus disambiguation|phonetics disambiguation|place name disambiguation|"
    "portal disambiguation|road disambiguation|roadis|school disambiguation|schooldis|"
    "species latin name abbreviation disambiguation|species latin name disambiguation|split dab|"
    "station disambiguation|stationdis|synagogue disambiguation|taxonomic authority disambiguation|"
    "taxonomy disambiguation|template disambiguation|tla|tladab|tladisambig|tndis|wikipedia disambiguation"
)
# The same in other languages; a name that is an ordinary word of a third language is left out.
_OTHER_LANGUAGES = (
    "begriffsklärung|homonymie|desambiguación|desambiguacion|desambig|disambigua|doorverwijspagina|dp|"
    "desambiguação|desambiguació|desambiguaçom|homónimos|ujednoznacznienie|неоднозначность|многозначность|"
    "неоднозначність|багатозначність|пояснение|развојница|višeznačna odrednica|вишезначна одредница|razdvojba|"
    "razločitev|rozcestník|rozlišovacia stránka|egyért|egyértelműsítő|egyértelműsítő lap|förgreningssida|peker|"
    "pekerside|flertydig|täsmennyssivu|täpsustuslehekülg|täpsustus|nuorodinis|nuorodinis straipsnis|"
    "nozīmju atdalīšana|aðgreining|dezambiguizare|kthjellim|anlam ayrımı|αποσαφήνιση|discretiva|apartigilo|"
    "argipen|trang định hướng|định hướng|曖昧さ回避|aimai|消歧义|消歧義|消歧义页|消歧義頁|동음이의|"
    "동음이의어 문서|توضيح|صفحة توضيح|ابهام‌زدایی|ضد ابهام|פירושונים|बहुविकल्पी शब्द|แก้กำกวม|მრავალმნიშვნელოვანი"
)
_DISAMBIGUATION_NAMES = frozenset(f"{_ENGLISH}|{_OTHER_LANGUAGES}".split("|"))
_TEMPLATE_NAME = re.compile(r"\{\{\s*([^|{}<\[\n]{2,60}?)\s*(?:\||\}\})")
_DISAMBIGUATION_TITLE = re.compile(
    r"\((?:disambiguation|begriffsklärung|homonymie|desambiguación|disambigua|doorverwijspagina|desambiguação|"
    r"desambiguació|ujednoznacznienie|значения|значення|rozcestník|olika betydelser|flertydig|egyértelműsítő lap|"
    r"täsmennyssivu|anlam ayrımı|αποσαφήνιση|dezambiguizare|apartigilo|định hướng|曖昧さ回避|消歧义|消歧義|동음이의|"
    r"توضيح|ابهام‌زدایی|פירושונים)\)$",
    re.IGNORECASE,
)
_LIST_TITLE = re.compile(r"(?:Lists?|Index|Outline) of ")


def page_kind(page: Page, options: PassageConfig) -> PageKind:
    """What the page counts as; disambiguation pages and lists that the options keep are articles.

    >>> page_kind(Page(1, "List of rivers of Peru", 0, None, 1, "", ""), PassageConfig())
    'lists'
    """
    if page.namespace != 0:
        return "other_namespaces"
    if page.redirect is not None:
        return "redirects"
    if not options.keep_disambiguation and is_disambiguation(page):
        return "disambiguation"
    if not options.keep_lists and is_list(page.title):
        return "lists"
    return "articles"


def is_disambiguation(page: Page) -> bool:
    """Whether the page only lists what its title may mean, by its template or its title.

    >>> is_disambiguation(Page(1, "Mercury", 0, None, 1, "", "* [[Mercury (planet)]]\\n{{Disambiguation|geo}}"))
    True
    >>> is_disambiguation(Page(1, "Merkur", 0, None, 1, "", "* [[Merkur (Planet)]]\\n{{Begriffsklärung}}"))
    True
    """
    if _DISAMBIGUATION_TITLE.search(page.title):
        return True
    return any(
        name.replace("_", " ").lower() in _DISAMBIGUATION_NAMES for name in _TEMPLATE_NAME.findall(page.wikitext)
    )


def is_list(title: str) -> bool:
    """Whether the title is that of a list, an index or an outline, in English.

    >>> is_list("Lists of rivers"), is_list("List of the Lost (novel)"), is_list("Listed building")
    (True, True, False)
    """
    return _LIST_TITLE.match(title) is not None
