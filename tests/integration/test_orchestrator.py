"""Flows under a real Prefect server, embedded or configured, and what is left when everything is killed."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import openbook
from tests.support.tiny_study import write_tiny_study

pytestmark = pytest.mark.integration

PROJECT = Path(__file__).parents[2]
FLOW = """
import os, sys, time
from flows.orchestrator import orchestrator

assert not [name for name in sys.modules if name.startswith(("prefect", "torch"))]
before = dict(os.environ)
with orchestrator(verbose="verbose" in sys.argv, meanwhile=lambda: print("meanwhile", flush=True)) as running:
    from prefect import flow, task, get_run_logger
    from flows.prefect_progress import prefect_progress

    @task
    def double(number):
        return 2 * number

    @flow(name="double-and-add", flow_run_name="double-and-add demo")
    def double_and_add(numbers):
        get_run_logger().info("a log line")
        with prefect_progress("numbers") as progress:
            return sum(double(number) for number in progress(numbers))

    print(running.embedded, double_and_add([1, 2]), flush=True)
    if "hang" in sys.argv:
        time.sleep(100)
    if "fail" in sys.argv:
        raise SystemExit("failed")
changed = {name for name in os.environ.keys() | before.keys() if os.environ.get(name) != before.get(name)}
assert all(not name.startswith("PREFECT_") or name == "PREFECT_SERVER_ANALYTICS_ENABLED" for name in changed), changed
"""


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    """Of a machine where nobody has configured Prefect, with a temporary folder that the test can look through."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    (tmp_path / "tmp").mkdir(exist_ok=True)
    (tmp_path / "home").mkdir(exist_ok=True)
    folders = {"TMPDIR": str(tmp_path / "tmp"), "HOME": str(tmp_path / "home"), "PYTHONPATH": str(PROJECT)}
    return {**kept, **folders, "PYTHONWARNINGS": "error::ResourceWarning", **more}


def start(tmp_path: Path, *words: str, **more: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", FLOW, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(tmp_path, **more),
    )


def server_processes(tmp_path: Path) -> list[int]:
    """The processes whose command line names this test's temporary folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(tmp_path / "tmp").encode() in command:
                found.append(int(entry.name))
    return found


def wait_until(condition: Any, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "still not so"
        time.sleep(0.05)


def left_behind(tmp_path: Path) -> list[str]:
    return [str(path) for folder in ("tmp", "home") for path in (tmp_path / folder).iterdir()]


def flow_done(run: "subprocess.Popen[str]") -> None:
    assert run.stdout is not None
    while run.stdout.readline() != "True 6\n":
        assert run.poll() is None


def test_a_run_is_quiet_leaves_nothing_and_removes_what_dead_ones_left(tmp_path: Path) -> None:
    with start(tmp_path, "hang") as killed:
        flow_done(killed)
        for process in server_processes(tmp_path):
            os.kill(process, signal.SIGKILL)
        killed.kill()
    assert [path.name for path in (tmp_path / "tmp").glob("openbook-prefect-*")], "with the server dead nobody cleans"
    with start(tmp_path, "fail") as run:
        out, err = run.communicate()
    assert (out.splitlines(), err, run.returncode) == (["meanwhile", "True 6"], "failed\n", 1)
    assert server_processes(tmp_path) == []
    assert left_behind(tmp_path) == []


def test_a_killed_run_leaves_nothing_either_and_verbose_shows_the_log(tmp_path: Path) -> None:
    with start(tmp_path, "hang", "verbose") as run:
        flow_done(run)
        assert server_processes(tmp_path)
        run.kill()
        assert run.stderr is not None
        err = run.stderr.read()
    assert "Flow run 'double-and-add demo' - a log line" in err
    wait_until(lambda: not server_processes(tmp_path))
    assert left_behind(tmp_path) == [], "the server removed its home before it ended"


@pytest.fixture
def configured_server(tmp_path: Path) -> Iterator[str]:
    """A Prefect server as a person would start it, with a home of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "PREFECT_HOME": str(tmp_path / "server"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_UI_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    command = [sys.executable, "-m", "uvicorn", "--factory", "prefect.server.api.server:create_app"]
    with subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port), "--log-level", "error"],
        env=environment(tmp_path, **settings),
        cwd=tmp_path,
    ) as server:
        url = f"http://127.0.0.1:{port}/api"
        wait_until(lambda: answers(url) or server.poll() is not None, 120)
        yield url
        server.kill()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, TimeoutError):
        return False


def ask(url: str, what: str) -> list[dict[str, Any]]:
    request = urllib.request.Request(f"{url}/{what}/filter", b"{}", {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:
        rows: list[dict[str, Any]] = json.load(response)
    return rows


def test_a_configured_server_sees_the_runs(tmp_path: Path, configured_server: str) -> None:
    profile = f'active = "team"\n[profiles.team]\nPREFECT_API_URL = "{configured_server}"\n'
    (tmp_path / "home" / ".prefect").mkdir(parents=True, exist_ok=True)
    (tmp_path / "home" / ".prefect" / "profiles.toml").write_text(profile)
    with start(tmp_path) as run:
        out, err = run.communicate()
    assert (out.splitlines(), err) == (["meanwhile", "False 6"], "")
    assert [row["name"] for row in ask(configured_server, "flows")] == ["double-and-add"]
    runs = ask(configured_server, "flow_runs")
    assert [(row["name"], row["state"]["name"]) for row in runs] == [("double-and-add demo", "Completed")]
    wait_until(lambda: len(ask(configured_server, "task_runs")) == 2)
    assert "a log line" in [row["message"] for row in ask(configured_server, "logs")]
    assert [row["data"] for row in ask(configured_server, "artifacts")] == [100.0]
    assert list((tmp_path / "tmp").glob("openbook-prefect-*")) == []


def test_a_configured_server_that_is_not_there_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.orchestrator import orchestrator
    from rag.errors import ConfigError

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    with (
        pytest.raises(ConfigError, match=r"the Prefect server http://127\.0\.0\.1:9/api does not answer"),
        orchestrator(),
    ):
        raise AssertionError("never entered")


@pytest.mark.timeout(400)
def test_a_configured_server_shows_a_study_with_its_stages_progress_and_tables(
    tmp_path: Path, configured_server: str
) -> None:
    study = write_tiny_study(tmp_path / "study")
    run = openbook("run", str(study), workspace=tmp_path / "workspace", PREFECT_API_URL=configured_server)
    assert run.returncode == 0, run.stderr
    flows = {found["name"] for found in ask(configured_server, "flow_runs")}
    assert {"run study: tiny", "ingest passages: tiny wiki-2016", "train model: tiny rag-token"} <= flows
    tasks = {found["name"] for found in ask(configured_server, "task_runs")}
    assert {"passages: wiki-2018", "model: rag-sequence", "predictions: closed-book.qa"} <= tasks
    shown = ask(configured_server, "artifacts")
    assert {"tiny-open-qa", "tiny-swap"} <= {found["key"] for found in shown}
    assert any(found["type"] == "progress" and found["description"] == "model rag-token" for found in shown)
