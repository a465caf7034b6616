"""A newer dump of the same wiki: what did not change is copied, and the result is as if it had not been."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.config import PassageConfig
from rag.corpus.ingest import pages as ingest_pages
from rag.corpus.ingest.source import SourceSpec, ingest
from rag.corpus.wikitext import Rendered, RenderOptions, render
from tests.support.dump_fixtures import Revision, page_xml, text_xml
from tests.support.small_wiki import article, contents, redirect, small_pieces, titled, write_dump

_COPY = "This sentence stands on some pages of the wiki, so that there are duplicates to find and to drop."
_OLD = [
    article(1, 250),
    article(2, 30),
    redirect(3, "Page 1"),
    titled(4, "Box", "{{Infobox x\n|a=b\n}}"),
    article(5, 500),
    article(6, 80, title="Old title"),
    titled(7, "Copy", _COPY),
    titled(8, "Other copy", _COPY),
    article(9, 120),
]
_NEW = [
    article(1, 250),
    article(2, 60, revision=1),
    redirect(3, "Page 2"),
    titled(4, "Box", "{{Infobox x\n|a=b\n}}"),
    article(5, 500),
    article(6, 80, title="New title"),
    titled(7, "Copy", _COPY),
    titled(8, "Other copy", _COPY),
    article(10, 90),
]
_CHANGED = 3  # articles of _NEW with another revision or title, or of which there was none


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pages that are rendered, by their first characters."""
    pages: list[str] = []

    def noted(wikitext: str, options: RenderOptions) -> Rendered:
        pages.append(wikitext[:20])
        return render(wikitext, options)

    monkeypatch.setattr(ingest_pages, "render", noted)
    return pages


def _spec(folder: Path, name: str, pages: list[str]) -> SourceSpec:
    return SourceSpec(name, (write_dump(folder / f"{name}.xml", pages),))


@pytest.mark.parametrize("shard_rows", [1, 3, 1000])
def test_unchanged_pages_are_copied_and_the_bytes_are_the_same(
    tmp_path: Path, rendered: list[str], shard_rows: int
) -> None:
    old, new = _spec(tmp_path, "old", _OLD), _spec(tmp_path, "new", _NEW)
    with small_pieces(block_bytes=2_000, shard_rows=shard_rows):
        ingest(old, PassageConfig(), tmp_path / "old")
        afresh = ingest(new, PassageConfig(), tmp_path / "afresh")
        rendered.clear()
        assert ingest(new, PassageConfig(), tmp_path / "copied", previous=tmp_path / "old") == afresh
    assert contents(tmp_path / "copied") == contents(tmp_path / "afresh")
    assert len(rendered) == _CHANGED


def test_workers_copy_too(tmp_path: Path) -> None:
    old, new = _spec(tmp_path, "old", _OLD), _spec(tmp_path, "new", _NEW)
    with small_pieces(block_bytes=2_000):
        ingest(old, PassageConfig(), tmp_path / "old")
        ingest(new, PassageConfig(), tmp_path / "afresh")
        ingest(new, PassageConfig(), tmp_path / "copied", 2, tmp_path / "old")
    assert contents(tmp_path / "copied") == contents(tmp_path / "afresh")


def test_a_page_that_lost_duplicates_is_rendered_again(tmp_path: Path, rendered: list[str]) -> None:
    options = PassageConfig(exact_duplicates="drop")
    old, new = _spec(tmp_path, "old", _OLD), _spec(tmp_path, "new", _NEW)
    assert ingest(old, options, tmp_path / "old").duplicates["dropped"] == 1
    ingest(new, options, tmp_path / "afresh")
    rendered.clear()
    ingest(new, options, tmp_path / "copied", previous=tmp_path / "old")
    assert contents(tmp_path / "copied") == contents(tmp_path / "afresh")
    assert len(rendered) == _CHANGED + 1


@pytest.mark.parametrize(
    ("options", "cap"),
    [
        (PassageConfig(words=50), None),
        (PassageConfig(tail="wrap"), None),
        (PassageConfig(headings=True), None),
        (PassageConfig(), 1),
    ],
)
def test_an_ingest_with_other_settings_is_not_copied_from(
    tmp_path: Path, rendered: list[str], options: PassageConfig, cap: int | None
) -> None:
    old = _spec(tmp_path, "old", _OLD)
    ingest(old, PassageConfig(), tmp_path / "old")
    rendered.clear()
    ingest(old._replace(max_passages_per_page=cap), options, tmp_path / "new", previous=tmp_path / "old")
    assert len(rendered) == len([page for page in _OLD if "redirect" not in page])


def test_other_names_of_its_namespaces_make_another_wiki(tmp_path: Path, rendered: list[str]) -> None:
    old = _spec(tmp_path, "old", _OLD)
    ingest(old, PassageConfig(), tmp_path / "old")
    renamed = old.paths[0].read_text().replace("</namespaces>", '<namespace key="6">Datei</namespace></namespaces>')
    (tmp_path / "new.xml").write_text(renamed)
    rendered.clear()
    ingest(SourceSpec("new", (tmp_path / "new.xml",)), PassageConfig(), tmp_path / "new", previous=tmp_path / "old")
    assert rendered


def test_a_page_that_stands_twice_is_rendered(tmp_path: Path, rendered: list[str]) -> None:
    old = _spec(tmp_path, "old", [article(1, 30), article(2, 30), article(1, 30)])
    ingest(old, PassageConfig(), tmp_path / "old")
    ingest(old, PassageConfig(), tmp_path / "afresh")
    rendered.clear()
    ingest(old, PassageConfig(), tmp_path / "copied", previous=tmp_path / "old")
    assert len(rendered) == 1
    assert contents(tmp_path / "copied") == contents(tmp_path / "afresh")


_OTHERS = {
    "another text of the same revision": (_OLD[0], article(1, 250).replace("w1x0x7", "repaired")),
    "a text that was deleted": (_OLD[0], titled(1, "Page 1", "")),
    "a revision without an id": (article(1, 250).replace("<id>10</id>", "<id>0</id>"),) * 2,
    "a revision without a text": (titled(1, "Page 1", ""),) * 2,
}


@pytest.mark.parametrize("case", _OTHERS)
def test_what_may_be_another_text_is_rendered(tmp_path: Path, rendered: list[str], case: str) -> None:
    was, now = _OTHERS[case]
    old, new = _spec(tmp_path, "old", [was, *_OLD[1:]]), _spec(tmp_path, "new", [now, *_OLD[1:]])
    ingest(old, PassageConfig(), tmp_path / "old")
    ingest(new, PassageConfig(), tmp_path / "afresh")
    rendered.clear()
    ingest(new, PassageConfig(), tmp_path / "copied", previous=tmp_path / "old")
    assert contents(tmp_path / "copied") == contents(tmp_path / "afresh")
    assert len(rendered) == 1


@pytest.mark.parametrize("change", [("testwiki", "otherwiki"), ("test.example", "other.example")])
def test_another_wiki_is_not_copied_from(tmp_path: Path, rendered: list[str], change: tuple[str, str]) -> None:
    old = _spec(tmp_path, "old", _OLD)
    ingest(old, PassageConfig(), tmp_path / "old")
    (tmp_path / "new.xml").write_text(old.paths[0].read_text().replace(*change))
    before = len(rendered)
    ingest(SourceSpec("new", (tmp_path / "new.xml",)), PassageConfig(), tmp_path / "new", previous=tmp_path / "old")
    assert len(rendered) == 2 * before


def _without(folder: Path, name: str) -> None:
    (folder / name).unlink()


def _cut(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])


def _damaged(folder: Path, name: str) -> None:
    """Every byte between the magic number and the footer is another."""
    content = bytearray((folder / name).read_bytes())
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    content[4:footer] = bytes(byte ^ 0xFF for byte in content[4:footer])
    (folder / name).write_bytes(content)


@pytest.mark.parametrize("name", ["pages-00000", "pages-00001", "passages-00000", "passages-00001"])
@pytest.mark.parametrize("harm", [_without, _cut, _damaged])
def test_a_damaged_earlier_ingest_only_costs_time(
    tmp_path: Path, rendered: list[str], harm: Callable[[Path, str], None], name: str
) -> None:
    old, new = _spec(tmp_path, "old", _OLD), _spec(tmp_path, "new", _NEW)
    with small_pieces(block_bytes=2_000, shard_rows=5):
        ingest(old, PassageConfig(), tmp_path / "old")
        assert len(list((tmp_path / "old").glob("pages-*"))) > 1
        harm(tmp_path / "old", f"{name}.parquet")
        ingest(new, PassageConfig(), tmp_path / "afresh")
        rendered.clear()
        ingest(new, PassageConfig(), tmp_path / "copied", previous=tmp_path / "old")
    assert contents(tmp_path / "copied") == contents(tmp_path / "afresh")
    assert len(rendered) > _CHANGED


def test_a_changed_letter_in_an_earlier_shard_is_not_copied(tmp_path: Path) -> None:
    old, new = _spec(tmp_path, "old", _OLD), _spec(tmp_path, "new", _NEW)
    ingest(old, PassageConfig(), tmp_path / "old")
    shard = tmp_path / "old" / "passages-00000.parquet"
    pq.write_table(pq.read_table(shard), shard, compression="none", write_page_checksum=True, use_dictionary=False)
    assert b"w1x0x7 " in shard.read_bytes()
    shard.write_bytes(shard.read_bytes().replace(b"w1x0x7 ", b"w1x0x9 "))
    ingest(new, PassageConfig(), tmp_path / "afresh")
    ingest(new, PassageConfig(), tmp_path / "copied", previous=tmp_path / "old")
    assert contents(tmp_path / "copied") == contents(tmp_path / "afresh")


@pytest.mark.parametrize("folder", ["nowhere", "empty"])
def test_an_earlier_ingest_that_is_none_is_not_asked(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    spec = _spec(tmp_path, "old", _OLD)
    report = ingest(spec, PassageConfig(), tmp_path / "out", previous=tmp_path / folder)
    assert report == ingest(spec, PassageConfig(), tmp_path / "afresh")


_TEXTS = st.sampled_from(["", "one two", "three", "one two three four five"])
_TWO_DUMPS = st.lists(
    st.tuples(st.integers(1, 6), st.integers(0, 2), st.sampled_from("AB"), _TEXTS, _TEXTS), min_size=1, max_size=6
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(_TWO_DUMPS, st.integers(0, 5), st.integers(1, 3), st.booleans())
def test_equal_ids_with_any_texts_give_the_bytes_of_a_fresh_ingest(
    tmp_path_factory: pytest.TempPathFactory,
    pages: list[tuple[int, int, str, str, str]],
    added: int,
    shard_rows: int,
    drop: bool,
) -> None:
    """Both dumps have the same ids, revisions and titles; the newer one has other texts, and begins with more pages."""
    folder = tmp_path_factory.mktemp("increments")
    options = PassageConfig(exact_duplicates="drop" if drop else "keep", words=2)
    old = [page_xml(page, title, Revision(number, text=text_xml(text))) for page, number, title, text, _ in pages]
    new = [page_xml(page, title, Revision(number, text=text_xml(text))) for page, number, title, _, text in pages]
    before, after = _spec(folder, "old", old), _spec(folder, "new", [*new[:added:-1], *new])
    with small_pieces(block_bytes=300, shard_rows=shard_rows):
        ingest(before, options, folder / "old")
        afresh = ingest(after, options, folder / "afresh")
        assert ingest(after, options, folder / "copied", previous=folder / "old") == afresh
    assert contents(folder / "copied") == contents(folder / "afresh")
