"""Several processes make the same bytes as one, and none is left when something goes wrong."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from rag.config import PassageConfig
from rag.corpus.ingest.source import SourceSpec, ingest
from rag.errors import DumpError, ResourceError
from tests.support.progress import at_first
from tests.support.small_wiki import contents, ingest_file, small_pieces, wiki_pages, write_dump


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dump(tmp_path_factory.mktemp("dump") / "dump.xml", wiki_pages(60))


def test_any_number_of_workers_writes_the_same_bytes(dump: Path, tmp_path: Path) -> None:
    with small_pieces():
        report = ingest_file(dump, tmp_path / "1")
        assert ingest_file(dump, tmp_path / "2", workers=2) == report
    assert contents(tmp_path / "2") == contents(tmp_path / "1")
    assert multiprocessing.active_children() == []


def test_articles_go_to_workers_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.corpus.ingest.batches._CHARACTERS", 300)
    path = tmp_path / "a.jsonl"
    lines = [json.dumps({"id": str(n), "title": f"T {n}", "text": f"Text {n} " * 20}) for n in range(1, 21)]
    path.write_text("\n".join(["no json", *lines, "no json"]))
    with small_pieces(shard_rows=5):
        for workers in (1, 2):
            ingest(SourceSpec("own", (path,), "jsonl"), PassageConfig(), tmp_path / f"{workers}", workers)
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_a_worker_that_is_killed_is_an_error_that_names_the_block(dump: Path, tmp_path: Path) -> None:
    def kill_all() -> None:
        for child in multiprocessing.active_children():
            child.kill()

    with small_pieces(block_bytes=1000), pytest.raises(ResourceError, match=r"block \d+ of .*dump.xml"):
        ingest(SourceSpec("test", (dump,)), PassageConfig(), tmp_path / "out", 2, None, at_first(kill_all))
    assert multiprocessing.active_children() == []


def test_an_error_in_a_worker_arrives_as_it_is(dump: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.xml"
    content = dump.read_bytes()
    broken.write_bytes(content.replace(b"<title>Page 31<", b"<title>Page & 31<"))
    with small_pieces(), pytest.raises(DumpError, match=r"broken.xml"):
        ingest_file(broken, tmp_path / "out", workers=2)
    assert multiprocessing.active_children() == []


_PROGRAM = """
import multiprocessing, os, signal, sys
from pathlib import Path
from tests.support.progress import at_first
from tests.support.small_wiki import small_pieces
from rag.config import PassageConfig
from rag.corpus.ingest.source import SourceSpec, ingest

def progress(items):
    for item in items:
        print(*[child.pid for child in multiprocessing.active_children()], flush=True)
        os.kill(os.getpid(), signal.{signal})
        yield item

if __name__ == "__main__":
    with small_pieces():
        ingest(SourceSpec("test", (Path(sys.argv[1]),)), PassageConfig(), Path(sys.argv[2]), 2, None, progress)
"""


@pytest.mark.parametrize(("name", "code"), [("SIGKILL", -signal.SIGKILL), ("SIGINT", 1)])
def test_no_worker_outlives_its_parent(dump: Path, tmp_path: Path, name: str, code: int) -> None:
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM.replace("{signal}", name))
    command = [sys.executable, str(program), str(dump), str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=60)
    assert ended.returncode in (code, -signal.SIGINT), ended.stderr
    workers = [int(pid) for pid in ended.stdout.split()]
    assert len(workers) == 2
    until = time.monotonic() + 20
    while any(map(psutil.pid_exists, workers)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(psutil.pid_exists, workers))
