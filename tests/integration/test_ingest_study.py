"""A dump from a web server to checked passages through the command line: killed, repeated, and one month later."""

import bz2
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from rag.demo.dump_writer import index_path, write_checksums, write_dump
from rag.demo.wiki import DumpPage
from rag.records import Page
from tests.support.cli import OPENBOOK, environment, openbook, start

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

_STUDY = """
name = "corpus"
title = "Passages only"

[sources.wiki]
path = "{address}"

[corpora]

[tasks]

[models]
"""
_PAGES = 2500
_WORDS = [
    f"{first}{second}" for first in ("ka", "lo", "mi", "ter", "sun") for second in ("ra", "den", "vo", "lis", "pan")
]


def _page(number: int, revision: int) -> DumpPage:
    if number % 50 == 0:
        page = Page(number, f"Old name {number}", 0, f"Place {number + 1}", revision, "2024-07-01T00:00:00Z",
                    f"#REDIRECT [[Place {number + 1}]]")  # fmt: skip
        return DumpPage(page, None, "Writer", 7, "")
    words = random.Random(revision)
    prose = " ".join(f"{words.choice(_WORDS)}{words.randrange(10**4)}" for _ in range(120))
    text = (
        f"'''Place {number}''' lies {{{{convert|{number % 90 + 1}|km|mi}}}} from [[Place {number + 1}|the next]]."
        f"<ref>{{{{cite web|url=http://example.org/{number}}}}}</ref> {{{{unheard of|{number}}}}}\n\n"
        + prose
        + "\n\n[[Category:Places]]"
    )
    return DumpPage(
        Page(number, f"Place {number}", 0, None, revision, "2024-07-01T00:00:00Z", text), None, "Writer", 7, ""
    )


def _write_month(folder: Path, date: str, pages: list[DumpPage]) -> Path:
    dump = folder / "testwiki" / date / f"testwiki-{date}-pages-articles-multistream.xml.bz2"
    write_dump(pages, dump)
    write_checksums([dump, index_path(dump)], dump.parent / f"testwiki-{date}-sha1sums.txt")
    return dump


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with the dumps of two months."""
    folder = tmp_path_factory.mktemp("web")
    july = [_page(number, 1000 + number) for number in range(1, _PAGES)]
    # One month later: six pages written anew, five gone, nine new and one redirect.
    august = [_page(number, 9000 if number <= 11 else 1000 + number) for number in range(1, _PAGES + 10) if number > 10
              or number % 2]  # fmt: skip
    _write_month(folder, "20240701", july)
    _write_month(folder, "20240801", august)
    command = [sys.executable, "-m", "tests.support.dump_server", str(folder), "--rate", "1500000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.kill()


def _study(folder: Path, address: str) -> str:
    folder.mkdir(exist_ok=True)
    path = folder / "corpus.toml"
    path.write_text(_STUDY.format(address=address), encoding="utf-8")
    return str(path)


def _manifests(workspace: Path) -> dict[str, bytes]:
    found = sorted(workspace.glob("artifacts/*/*/manifest.json"))
    return {path.parent.name: path.read_bytes() for path in found if path.parent.parent.name in ("dump", "passages")}


# What exists while the files are fetched, while pages are read, and while passages are written.
_MOMENTS = (
    "artifacts/dump/*.partial/*.part",
    "artifacts/passages/*.partial",
    "artifacts/passages/*.partial/.passages*",
)


@pytest.fixture(scope="module")
def undisturbed(web: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    done = openbook("run", _study(folder, f"{web}/testwiki/20240701/"), workspace=folder / "workspace")
    assert done.returncode == 0, done.stderr
    return folder / "workspace"


def _kill_when(workspace: Path, study: str, moment: str) -> None:
    process = start("run", study, workspace=workspace)
    deadline = time.monotonic() + 100
    while not list(workspace.glob(moment)) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    assert process.poll() is None, f"the study ended before {moment} was there"
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_killed_while_fetching_reading_and_writing_it_ends_with_the_same_manifest(
    web: str, undisturbed: Path, tmp_path: Path
) -> None:
    workspace, study = tmp_path / "workspace", _study(tmp_path, f"{web}/testwiki/20240701/")
    for moment in _MOMENTS:
        _kill_when(workspace, study, moment)
    done = openbook("run", study, workspace=workspace)
    assert done.returncode == 0, done.stderr
    ours = _manifests(workspace)
    assert len(ours) == 2
    assert {name: _manifests(undisturbed)[name] for name in ours} == ours
    assert not list(workspace.glob("artifacts/*/*.partial"))


def test_every_page_is_accounted_for_and_traced_to_the_published_sum(undisturbed: Path) -> None:
    with duckdb.connect(str(undisturbed / "database" / "results.duckdb"), read_only=True) as results:
        row = results.execute("SELECT pages, articles, redirects, rejects, files_json FROM v_sources").fetchone()
        dropped = results.execute("SELECT template, dropped FROM dropped_templates").fetchall()
        suites = results.execute("SELECT DISTINCT suite, success FROM v_checks").fetchall()
    assert row is not None
    redirects = (_PAGES - 1) // 50
    assert row[:4] == (_PAGES - 1, _PAGES - 1 - redirects, redirects, 0)
    assert dropped == [("unheard of", _PAGES - 1 - redirects)]
    assert suites
    assert all(success for _, success in suites)
    for name, sha1 in re.findall(r'"name":"([^"]+)".*?"sha1":"([0-9a-f]{40})"', row[4].replace(": ", ":")):
        (stored,) = undisturbed.glob(f"artifacts/dump/*/{name}")
        assert subprocess.check_output(["sha1sum", stored], text=True).split()[0] == sha1
    shards = sorted(undisturbed.glob("artifacts/passages/*/passages-*.parquet"))
    texts = pq.read_table(shards, columns=["text"])["text"].to_pylist()
    assert not [text for text in texts if "{{" in text or "[[" in text]
    assert any("lies 2 kilometres (1.2 mi) from the next." in text for text in texts)


def test_a_month_later_only_changed_pages_are_read_and_the_changes_are_listed(
    web: str, undisturbed: Path, tmp_path: Path
) -> None:
    study = _study(tmp_path, f"{web}/testwiki/20240801/")
    later = openbook("run", study, workspace=undisturbed)
    assert later.returncode == 0, later.stderr
    with duckdb.connect(str(undisturbed / "database" / "results.duckdb"), read_only=True) as results:
        row = results.execute(
            "SELECT counts_json->>'$.pages_added', counts_json->>'$.pages_changed', counts_json->>'$.pages_removed' "
            "FROM datasets WHERE kind = 'changes'"
        ).fetchone()
    assert row == ("9", "6", "5")
    fresh = openbook("run", study, workspace=tmp_path / "fresh")
    assert fresh.returncode == 0, fresh.stderr
    theirs = _manifests(tmp_path / "fresh")
    assert {name: _manifests(undisturbed)[name] for name in theirs} == theirs


def test_a_wrong_sum_stops_the_study_before_anything_is_read(tmp_path: Path) -> None:
    dump = _write_month(tmp_path, "20240701", [_page(1, 1)])
    study = _study(tmp_path, str(dump))
    good = bz2.decompress(dump.read_bytes())
    dump.write_bytes(bz2.compress(good.replace(b"Place 1", b"Plate 1")))
    refused = openbook("run", study, workspace=tmp_path / "workspace")
    assert refused.returncode == 11
    assert "sha1" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not list((tmp_path / "workspace").glob("artifacts/passages/*/passages-*.parquet"))


_ROWS = """
name = "rows"
title = "Rows"

[sources.own]
path = "rows"
format = "jsonl"

[corpora]

[tasks]

[models]
"""


def _select(workspace: Path, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(workspace / "database" / "results.duckdb"), read_only=True) as results:
        return results.execute(sql).fetchall()


def test_what_failed_and_what_was_rejected_can_be_queried_and_mended(tmp_path: Path) -> None:
    study, workspace = tmp_path / "rows.toml", tmp_path / "workspace"
    study.write_text(_ROWS, encoding="utf-8")
    (tmp_path / "rows").mkdir()
    for name in ("a.jsonl", "b.jsonl"):  # the same mistake in the same line of two files
        (tmp_path / "rows" / name).write_text("no json\n", encoding="utf-8")
    refused = openbook("run", str(study), workspace=workspace)
    assert refused.returncode == 11
    assert "at least one passage" in refused.stderr
    assert "could not be used; their reasons are in" in refused.stdout
    assert _select(workspace, "SELECT count(*) FROM checks WHERE NOT success AND severity = 'critical'") != [(0,)]
    rejects = _select(workspace, "SELECT source, row FROM rejects WHERE stage = 'passages' ORDER BY ALL")
    assert rejects == [("own: a.jsonl:1", 1), ("own: b.jsonl:1", 1)]
    text = " ".join(f"word{number}" for number in range(120))
    for number in range(12):
        row = f'{{"id": "{number + 1}", "title": "T {number}", "text": "{text} {number}"}}\n'
        (tmp_path / "rows" / f"{number}.jsonl").write_text(row, encoding="utf-8")
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / "rows" / name).unlink()
    done = openbook("run", str(study), workspace=workspace)
    assert done.returncode == 0, done.stderr
    verified = openbook("verify", workspace=workspace)
    assert (verified.returncode, "verified" in verified.stdout) == (0, True), verified.stderr
    searched = openbook("search", "word1", "--study", str(study), workspace=workspace)
    assert (searched.returncode, "name one under [corpora]" in searched.stderr) == (10, True)


def test_ctrl_c_says_that_the_same_command_goes_on(web: str, tmp_path: Path) -> None:
    study, workspace = _study(tmp_path, f"{web}/testwiki/20240701/"), tmp_path / "workspace"
    with subprocess.Popen(
        [*OPENBOOK, "run", study], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd=tmp_path, text=True,
        env=environment(workspace),
    ) as process:  # fmt: skip
        deadline = time.monotonic() + 100
        while not list(workspace.glob(_MOMENTS[0])) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == 130
    assert "stopped; the same command goes on from here" in said
    assert "Traceback" not in said


def test_a_server_that_cannot_be_reached_is_a_clear_error(tmp_path: Path) -> None:
    study = _study(tmp_path, "http://127.0.0.1:9/testwiki/20240701/")
    refused = openbook("run", study, workspace=tmp_path / "workspace", OPENBOOK_DOWNLOAD_ATTEMPTS="2")
    assert refused.returncode in (11, 14)
    assert "127.0.0.1:9" in refused.stderr
    assert "the next attempt in" in refused.stdout
    assert "Traceback" not in refused.stderr
