"""Several processes and Ray write the same bytes as one process, and none is left when something goes wrong."""

import importlib.util
import json
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from flows.encode_shards import shard_runner
from flows.settings import Settings
from rag.errors import DataError, ResourceError
from rag.retrieval import encode as encode_module
from rag.retrieval.encode import VectorReport, encode_source
from tests.support.listed_source import EncoderAt, EncoderThatDies, listed_source
from tests.support.progress import at_first
from tests.support.tiny_encoders import encoder_config, write_bert

pytestmark = pytest.mark.integration

_CONFIG = encoder_config(precision="float32", storage="float32")
_TWO = shard_runner(Settings(encoders=2, threads=1), "cpu")
_needs_ray = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("ray", "prefect_ray"))), reason="Ray is not installed (openbook-rag[ray])"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode_module, "SHARD_ROWS", 4)


def _content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _kill_all() -> None:
    for child in multiprocessing.active_children():
        child.kill()


def _finished(folder: Path) -> int:
    return len(list(folder.glob(".vectors-*.json")))


def test_two_processes_write_the_same_bytes_as_one(model: Path, tmp_path: Path) -> None:
    source, encoder = listed_source(range(103)), EncoderAt(model, _CONFIG)
    report = encode_source(source, encoder, tmp_path / "1")
    assert encode_source(source, encoder, tmp_path / "2", run_shards=_TWO) == report
    assert _content(tmp_path / "2") == _content(tmp_path / "1")
    assert multiprocessing.active_children() == []


def test_a_process_that_is_killed_is_an_error_and_finished_shards_stay(model: Path, tmp_path: Path) -> None:
    source, encoder, out = listed_source(range(60)), EncoderAt(model, _CONFIG), tmp_path / "out"
    with pytest.raises(ResourceError, match=r"ended from outside while it worked on shard \d+ .*OPENBOOK_ENCODERS"):
        encode_source(source, encoder, out, run_shards=_TWO, progress=at_first(_kill_all))
    assert multiprocessing.active_children() == []
    finished = _finished(out)
    assert finished >= 1
    assert encode_source(source, encoder, out).resumed == 4 * finished
    encode_source(source, encoder, tmp_path / "whole")
    assert _content(out) == _content(tmp_path / "whole")


def test_a_process_that_dies_while_it_loads_is_an_error(model: Path, tmp_path: Path) -> None:
    encoder = EncoderThatDies(model, _CONFIG, tmp_path / "died", os.getpid())
    with pytest.raises(ResourceError, match="finished shards are kept"):
        encode_source(listed_source(range(9)), encoder, tmp_path / "out", run_shards=_TWO)
    assert multiprocessing.active_children() == []


def test_an_error_in_a_process_arrives_as_it_is(model: Path, tmp_path: Path) -> None:
    encoder = EncoderAt(model, _CONFIG.model_copy(update={"normalize": False}))
    source = listed_source(range(9))
    broken = _nan_weights(model, tmp_path / "broken")
    with pytest.raises(DataError, match=r"passage s:\d:0: passage row \d has a vector that is not finite"):
        encode_source(source, EncoderAt(broken, encoder.config), tmp_path / "out", run_shards=_TWO)
    assert multiprocessing.active_children() == []


def _nan_weights(model: Path, folder: Path) -> Path:
    encoder = EncoderAt(model, _CONFIG)()
    for weight in encoder.module.parameters():
        weight.data.fill_(float("nan"))
    encoder.save(folder)
    return folder


_PROGRAM = """
import multiprocessing, os, signal, sys
from pathlib import Path
import rag.retrieval.encode as encode
from flows.encode_shards import shard_runner
from flows.settings import Settings
from tests.support.listed_source import EncoderAt, listed_source
from tests.support.tiny_encoders import encoder_config

def progress(rows):
    for number, row in enumerate(rows):
        if number == 9:
            print(*[child.pid for child in multiprocessing.active_children()], flush=True)
            os.kill(os.getpid(), signal.SIGNAL)
        yield row

if __name__ == "__main__":
    encode.SHARD_ROWS = 4
    encoder = EncoderAt(Path(sys.argv[1]), encoder_config(precision="float32", storage="float32"))
    runner = shard_runner(Settings(encoders=int(sys.argv[3]), threads=1), "cpu")
    encode.encode_source(listed_source(range(200)), encoder, Path(sys.argv[2]), run_shards=runner, progress=progress)
"""


def _run(program: Path, *arguments: object, **environment: str) -> "subprocess.CompletedProcess[str]":
    known = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2]), **environment}
    command = [sys.executable, str(program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=known, timeout=200)


@pytest.mark.parametrize(
    ("name", "codes", "encoders"), [("SIGKILL", {-9}, 1), ("SIGKILL", {-9}, 2), ("SIGINT", {1, -2}, 2)]
)
def test_who_is_stopped_leaves_no_process_and_loses_little(
    model: Path, tmp_path: Path, name: str, codes: set[int], encoders: int
) -> None:
    program, out = tmp_path / "program.py", tmp_path / "out"
    program.write_text(_PROGRAM.replace("SIGNAL", name))
    ended = _run(program, model, out, encoders)
    assert ended.returncode in codes, ended.stderr
    workers = [int(pid) for pid in ended.stdout.split()]
    assert len(workers) == (encoders if encoders > 1 else 0)
    until = time.monotonic() + 20
    while any(map(psutil.pid_exists, workers)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(psutil.pid_exists, workers))

    source, encoder, finished = listed_source(range(200)), EncoderAt(model, _CONFIG), _finished(out)
    assert 2 <= finished < 50
    report = encode_source(source, encoder, out)
    assert report == VectorReport(encoded=200 - 4 * finished, resumed=4 * finished, reused=0, repeated=0)
    encode_source(source, encoder, tmp_path / "whole")
    assert _content(out) == _content(tmp_path / "whole")


_RAY_PROGRAM = """
import json, os, sys, threading
from pathlib import Path
from flows.orchestrator import orchestrator

if __name__ == "__main__":
    model, out, marker = map(Path, sys.argv[1:])
    with orchestrator():
        import ray
        import rag.retrieval.encode as encode
        from prefect import flow
        from flows.encode_shards import shard_runner
        from flows.settings import Settings
        from flows.tasks import build_stage
        from tests.support.listed_source import EncoderThatDies, listed_source
        from tests.support.tiny_encoders import encoder_config

        lock = threading.Lock()  # like much of what a stage holds, it cannot travel to another process
        config = encoder_config(precision="float32", storage="float32")

        def work():
            with lock:
                encoder = EncoderThatDies(model, config, marker, os.getpid())
                runner = shard_runner(Settings(encoders=2, threads=1, ray="local"), "cpu")
                return encode.encode_source(listed_source(range(103)), encoder, out, run_shards=runner)

        @flow
        def build():
            return build_stage("vectors", "s", work)

        encode.SHARD_ROWS = 4
        print(json.dumps(build()))
        assert not ray.is_initialized()
"""


@_needs_ray
def test_ray_writes_the_same_bytes_though_a_worker_dies(model: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_RAY_PROGRAM)
    ended = _run(program, model, tmp_path / "ray", tmp_path / "died")
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "died").exists()
    report = encode_source(listed_source(range(103)), EncoderAt(model, _CONFIG), tmp_path / "here")
    assert json.loads(ended.stdout.splitlines()[-1]) == list(report)  # Ray says above that a worker died
    assert _content(tmp_path / "ray") == _content(tmp_path / "here")


@_needs_ray
def test_a_ray_that_does_not_answer_is_named(model: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_RAY_PROGRAM.replace('"local"', '"ray://127.0.0.1:1"'))
    seconds = {f"RAY_CLIENT_{name}_CONNECTION_TIMEOUT_S": "1" for name in ("INITIAL", "MAX")}
    ended = _run(program, model, tmp_path / "ray", tmp_path / "died", **seconds)
    assert ended.returncode == 1
    assert "ResourceError: no Ray answers at ray://127.0.0.1:1: " in ended.stderr
