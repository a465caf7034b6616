"""An ingest that is stopped at any moment goes on where it was and ends with the same bytes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rag.config import PassageConfig
from rag.corpus.ingest.source import SourceSpec, ingest
from rag.corpus.passages import passage_files
from tests.support.small_wiki import contents, ingest_file, small_pieces, titled, wiki_pages, write_dump

_TEXT = "This sentence stands on some pages of the wiki, so that there are duplicates to find and to drop."
_FILES = {"passages-00000.parquet", "pages-00001.parquet", "duplicates.parquet", "rejects.jsonl"}
_STATE = ".ingest-state.json"


def _dump(folder: Path) -> Path:
    rejected = titled(40, "Box", "{{Infobox x\n|a=b\n}}")
    copies = [titled(number, f"Copy {number}", _TEXT) for number in range(41, 44)]
    return write_dump(folder / "dump.xml", [rejected, *wiki_pages(20), *copies, titled(44, "No text", "")])


def _killed(dump: Path, kills: dict[Path, Sequence[int]]) -> list[int]:
    """Ingest into each folder, killed before these operations, then whole; how many operations the last call made."""
    scenarios = [f"{folder}={','.join(map(str, counts))}" for folder, counts in kills.items()]
    command = [sys.executable, "-m", "tests.support.killed_ingest", str(dump), *scenarios]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return [int(line) for line in ended.stdout.split()]


def test_kill_9_before_any_sync_or_rename_changes_nothing(tmp_path: Path) -> None:
    dump = _dump(tmp_path)
    (operations,) = _killed(dump, {tmp_path / "undisturbed": ()})
    expected = contents(tmp_path / "undisturbed")
    assert sum(name.startswith("passages-") for name in expected) > 2
    assert [name for name in expected if name.startswith(".")] == [_STATE]
    once = {tmp_path / f"killed-{count}": (count,) for count in range(1, operations + 1)}
    left = _killed(dump, {**once, tmp_path / "often": [9] * 3})
    assert [folder.name for folder in once if contents(folder) != expected] == []
    assert contents(tmp_path / "often") == expected
    # After the first shard no call begins anew: the later the kill, the less is left to do.
    assert left[0] == operations
    assert all(count < operations for count in left[12:])


def test_a_finished_ingest_is_not_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump, options = _dump(tmp_path), PassageConfig(exact_duplicates="drop")
    with small_pieces():
        report = ingest_file(dump, tmp_path / "out", options)
        before = {path: path.stat() for path in (tmp_path / "out").iterdir()}
        for name in ("make_batch", "find_duplicates"):
            module = "workers" if name == "make_batch" else "source"
            monkeypatch.setattr(f"rag.corpus.ingest.{module}.{name}", None)
        assert ingest_file(dump, tmp_path / "out", options) == report
    assert report.duplicates["dropped"] == 2
    assert {path: path.stat().st_mtime_ns for path in before} == {path: at.st_mtime_ns for path, at in before.items()}


@pytest.mark.parametrize("lost", sorted(_FILES))
@pytest.mark.parametrize("rejects", [True, False])
def test_a_finished_ingest_that_lost_a_file_is_begun_anew(tmp_path: Path, lost: str, rejects: bool) -> None:
    out = tmp_path / "out"
    dump = _dump(tmp_path) if rejects else write_dump(tmp_path / "dump.xml", wiki_pages(20))
    with small_pieces():
        ingest_file(dump, out)
        expected = contents(out)
        (out / lost).unlink()
        ingest_file(dump, out)
    assert contents(out) == expected


def test_pages_repeated_across_a_stop_are_noticed(tmp_path: Path) -> None:
    pages = wiki_pages(20)
    dump, out = write_dump(tmp_path / "dump.xml", [*pages, *pages[:7]]), tmp_path / "out"
    with small_pieces(shard_rows=5):
        assert ingest_file(dump, tmp_path / "whole").repeated == 7
        with pytest.raises(_Stopped):
            ingest(SourceSpec("test", (dump,)), PassageConfig(), out, progress=_stopping(3, []))
        ingest_file(dump, out)
    assert contents(out) == contents(tmp_path / "whole")


class _Stopped(KeyboardInterrupt):
    pass


def _stopping(after: int, seen: list[Any]) -> Any:
    def progress(items: Iterable[Any]) -> Iterator[Any]:
        for number, item in enumerate(items):
            if number == after:
                raise _Stopped
            seen.append(item)
            yield item

    return progress


def _stopped_then_repeated(spec: SourceSpec, out: Path, after: int) -> tuple[int, int]:
    """How many pieces of work the stopped and the repeated call took."""
    stopped: list[Any] = []
    repeated: list[Any] = []
    with pytest.raises(_Stopped):
        ingest(spec, PassageConfig(), out, progress=_stopping(after, stopped))
    assert not any(name.endswith(".tmp") and "rejects" not in name for name in contents(out))
    ingest(spec, PassageConfig(), out, progress=_stopping(-1, repeated))
    return len(stopped), len(repeated)


def test_a_repeated_call_reads_only_the_blocks_that_are_left(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump.xml", wiki_pages(20))
    parts = (dump, write_dump(tmp_path / "more.xml", wiki_pages(10)))
    spec = SourceSpec("test", parts)
    with small_pieces(shard_rows=1):
        undisturbed: list[Any] = []
        ingest(spec, PassageConfig(), tmp_path / "whole", progress=_stopping(-1, undisturbed))
        blocks = [item for item in undisturbed if isinstance(item, tuple) and hasattr(item[0], "block")]
        for after in (1, len(blocks) - 2):
            out = tmp_path / f"after-{after}"
            stopped, repeated = _stopped_then_repeated(spec, out, after)
            assert stopped + repeated == len(undisturbed)
            assert contents(out) == contents(tmp_path / "whole")


def test_articles_go_on_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.corpus.ingest.batches._CHARACTERS", 300)
    path = tmp_path / "a.jsonl"
    lines = [json.dumps({"id": str(n), "title": f"T {n}", "text": f"Text {n} " * 20}) for n in range(1, 41)]
    path.write_text("\n".join(["no json", *lines, "no json"]))
    spec = SourceSpec("own", (path,), "jsonl")
    with small_pieces(shard_rows=5):
        ingest(spec, PassageConfig(), tmp_path / "whole")
        _stopped_then_repeated(spec, tmp_path / "stopped", 25)
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")


def test_half_a_result_of_other_inputs_is_not_gone_on_with(tmp_path: Path) -> None:
    dump = _dump(tmp_path)
    spec = SourceSpec("test", (dump,))
    with small_pieces():
        for change in ("dump", "options"):
            out = tmp_path / change
            with pytest.raises(_Stopped):
                ingest(spec, PassageConfig(), out, progress=_stopping(2, []))
            assert (out / _STATE).exists()
            if change == "dump":
                dump.write_bytes(dump.read_bytes().replace(b"Page 1<", b"Seite<"))
                os.utime(dump, (1, 1))
            options = PassageConfig(words=50 if change == "options" else 100)
            ingest_file(dump, out, options)
            ingest_file(dump, tmp_path / f"{change} afresh", options)
            assert contents(out) == contents(tmp_path / f"{change} afresh")


@pytest.mark.parametrize("lost", ["passages-00000.parquet", "pages-00000.parquet", ".rejects.jsonl.tmp"])
def test_half_a_result_that_lost_a_file_is_not_gone_on_with(tmp_path: Path, lost: str) -> None:
    dump, out = _dump(tmp_path), tmp_path / "out"
    with small_pieces():
        ingest_file(dump, tmp_path / "whole")
        with pytest.raises(_Stopped):
            ingest(SourceSpec("test", (dump,)), PassageConfig(), out, progress=_stopping(2, []))
        (out / lost).unlink()
        ingest_file(dump, out)
    assert contents(out) == contents(tmp_path / "whole")


def test_a_state_that_cannot_be_read_is_no_state(tmp_path: Path) -> None:
    dump, out = _dump(tmp_path), tmp_path / "out"
    out.mkdir()
    for content in ("", "[]", '{"identity": 3, "unknown": 1}', "null"):
        (out / _STATE).write_text(content)
        assert ingest_file(dump, out).passages == sum(pq.read_metadata(path).num_rows for path in passage_files(out))
