"""A newer dump of the same wiki: what did not change is copied, and the result is as if it had not been."""

from pathlib import Path

import pytest

from rag.config import PassageConfig
from rag.corpus.ingest import pages as ingest_pages
from rag.corpus.ingest.source import SourceSpec, ingest
from rag.corpus.wikitext import Rendered, RenderOptions, render
from rag.errors import DataError
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
    assert len(rendered) == 2
    assert contents(tmp_path / "copied") == contents(tmp_path / "afresh")


def test_an_earlier_ingest_that_is_none_is_an_error(tmp_path: Path) -> None:
    spec = _spec(tmp_path, "old", _OLD)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no ledger"):
        ingest(spec, PassageConfig(), tmp_path / "out", previous=tmp_path / "empty")
    ingest(spec, PassageConfig(), tmp_path / "half")
    (tmp_path / "half" / "passages-00000.parquet").rename(tmp_path / "half" / "passages-00001.parquet")
    (tmp_path / "half" / "passages-00000.parquet").write_bytes(b"")
    with pytest.raises(DataError, match="2 shards of passages and 1 of pages"):
        ingest(spec, PassageConfig(), tmp_path / "out", previous=tmp_path / "half")
