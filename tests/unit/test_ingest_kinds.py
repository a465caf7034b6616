"""Which pages are disambiguation pages and lists."""

import pytest

from rag.config import PassageConfig
from rag.corpus.ingest.page_kinds import is_disambiguation, page_kind
from rag.records import Page


@pytest.mark.parametrize(
    ("title", "wikitext", "expected"),
    [
        ("A", "{{disambig}}", True),
        ("A", "{{ Hndis|name=A }}", True),
        ("A", "{{geodis}}", True),
        ("A", "{{Geo_dis}} {{Place_name disambiguation}}", True),
        ("A", "{{Disambiguation needed}}", False),
        ("A", "{{Airport disambiguation\n|x}}", True),
        ("A", "'''A''' {{lang|fr|{{disambig}}}}", True),
        ("A", "{{Begriffsklärung}}", True),
        ("A", "{{Homonymie}}", True),
        ("A", "{{desambiguación}}", True),
        ("A", "{{Disambigua}}", True),
        ("A", "{{Doorverwijspagina}}", True),
        ("A", "{{Неоднозначность|тип=место}}", True),
        ("A", "{{曖昧さ回避}}", True),
        ("A", "{{Begriffsklärungshinweis}}", False),
        ("A", "[[disambig]] {disambig}", False),
        ("A (disambiguation)", "", True),
        ("A (Begriffsklärung)", "", True),
        ("Disambiguation", "The word is", False),
    ],
)
def test_disambiguation_pages_are_known_by_template_or_title(title: str, wikitext: str, expected: bool) -> None:
    assert is_disambiguation(Page(1, title, 0, None, 1, "", wikitext)) is expected


@pytest.mark.parametrize(
    ("page", "kind"),
    [
        (Page(1, "List of rivers", 0, None, 1, "", ""), "lists"),
        (Page(1, "Lists of rivers", 0, None, 1, "", ""), "lists"),
        (Page(1, "Index of rivers", 0, None, 1, "", ""), "lists"),
        (Page(1, "Outline of rivers", 0, None, 1, "", ""), "lists"),
        (Page(1, "Listening of rivers", 0, None, 1, "", ""), "articles"),
        (Page(1, "List of rivers", 1, None, 1, "", ""), "other_namespaces"),
        (Page(1, "List of rivers", 0, "River", 1, "", ""), "redirects"),
        (Page(1, "List of rivers", 0, "", 1, "", ""), "redirects"),
        (Page(1, "List of rivers (disambiguation)", 0, None, 1, "", ""), "disambiguation"),
    ],
)
def test_a_page_is_of_one_kind(page: Page, kind: str) -> None:
    assert page_kind(page, PassageConfig()) == kind
    if kind in ("lists", "disambiguation"):
        assert page_kind(page, PassageConfig(keep_lists=True, keep_disambiguation=True)) == "articles"
