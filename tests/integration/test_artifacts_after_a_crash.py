"""kill -9 at any moment of a build, and two processes at one artifact: real processes, real signals."""

import subprocess
import sys
from pathlib import Path

import pytest

from flows.artifacts import ArtifactStore, BuildResult, Identity, Outcome

pytestmark = pytest.mark.integration

CHILD = """
import os, pathlib, signal, sys, time
import flows.artifacts as artifacts

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def build(folder):
    (folder / "first.txt").write_text("first")
    if moment == "during build":
        (folder / ".second.txt.tmp").write_text("sec")
        die()
    if moment == "slow":
        print("building", flush=True)
        while not (root / "go").exists():
            time.sleep(0.02)
    (folder / "second.txt").write_text("second")
    return artifacts.BuildResult({"rows_out": 2})

root, moment = pathlib.Path(sys.argv[1]), sys.argv[2]
if moment == "before manifest":
    artifacts.write_manifest = die
if moment == "before rename":
    artifacts._publish = die
store = artifacts.ArtifactStore(root, notify=lambda line: print(line, flush=True))
outcome = store.get_or_build("ingest", "demo", identity=artifacts.Identity({}, {}), build=build)
print(outcome.reason, flush=True)
"""


def start(root: Path, moment: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", CHILD, str(root), moment]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


def build_here(root: Path) -> tuple[Outcome, list[str]]:
    """The artifact, and the files that its build found in its folder."""
    found: list[str] = []

    def build(folder: Path) -> BuildResult:
        found.extend(sorted(path.name for path in folder.iterdir()))
        (folder / "first.txt").write_text("first")
        (folder / "second.txt").write_text("second")
        return BuildResult({"rows_out": 2})

    store = ArtifactStore(root, notify=pytest.fail)  # nobody has to be waited for
    outcome = store.get_or_build("ingest", "demo", identity=Identity({}, {}), build=build)
    return outcome, found


@pytest.mark.parametrize(
    ("moment", "left", "reason"),
    [
        ("during build", [".second.txt.tmp", "first.txt"], "first build, going on with half-done work"),
        ("before manifest", ["first.txt", "second.txt"], "first build, going on with half-done work"),
        ("before rename", [], "cached: its build was stopped just before publication"),
    ],
)
def test_a_killed_build_is_finished_by_the_next(tmp_path: Path, moment: str, left: list[str], reason: str) -> None:
    with start(tmp_path, moment) as child:
        assert child.wait() == -9
    assert list(ArtifactStore(tmp_path).artifacts()) == [], "a killed build never looks finished"
    outcome, found = build_here(tmp_path)
    assert (outcome.reason, found) == (reason, left)
    assert ArtifactStore(tmp_path).verify(outcome.artifact) == []
    assert sorted(path.name for path in outcome.artifact.folder.iterdir()) == [
        "first.txt",
        "manifest.json",
        "second.txt",
    ]
    assert [path.name for path in (tmp_path / "ingest").iterdir()] == [outcome.artifact.folder.name]
    assert build_here(tmp_path)[0].reason == "cached"


def test_bytes_lost_between_manifest_and_rename_are_noticed(tmp_path: Path) -> None:
    with start(tmp_path, "before rename") as child:
        child.wait()
    (partial,) = (tmp_path / "ingest").glob("*.partial")
    (partial / "first.txt").write_text("worst")  # the same size
    outcome, _ = build_here(tmp_path)
    assert not outcome.cache_hit
    assert outcome.artifact.file("first.txt").read_text() == "first"


def test_the_second_process_waits_says_for_whom_and_finds_the_result(tmp_path: Path) -> None:
    with start(tmp_path, "slow") as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "building\n"
        with start(tmp_path, "none") as second:
            assert second.stdout is not None
            assert second.stdout.readline().startswith(f"waiting for ingest demo: process {first.pid} on ")
            (tmp_path / "go").touch()
            assert second.stdout.read() == "cached: another process has just built it\n"
        assert first.stdout.read() == "first build\n"


def test_a_killed_holder_frees_the_lock_at_once(tmp_path: Path) -> None:
    with start(tmp_path, "slow") as first:
        assert first.stdout is not None
        first.stdout.readline()
        first.kill()
    outcome, _ = build_here(tmp_path)
    assert outcome.reason == "first build, going on with half-done work"
