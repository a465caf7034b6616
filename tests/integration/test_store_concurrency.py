"""The store among real processes: readers and a writer, two writers, and a writer that is killed."""

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reports.errors import StoreError
from reports.store import Store

pytestmark = pytest.mark.integration

_STEPS = "[{'model': 'm', 'step': step, 'loss_per_example': 1.0} for step in range(N)]"


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Store(tmp_path_factory.mktemp("empty")).publish()


@pytest.fixture
def store(empty: Path, tmp_path: Path) -> Store:
    shutil.copyfile(empty, tmp_path / "results.duckdb")
    return Store(tmp_path)


def _python(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *(str(argument) for argument in arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _said(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def _tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def _write(store: Store, run_id: str, n: int) -> None:
    with store.write() as session:
        rows = [{"model": "m", "step": step, "loss_per_example": 1.0} for step in range(n)]
        session.replace("training_steps", {"run_id": run_id}, rows)


_READER = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1], read_only=True)
count = "SELECT count(*) FROM training_steps"
print(connection.execute(count).fetchall()[0][0], flush=True)
sys.stdin.readline()
print(connection.execute(count).fetchall()[0][0], flush=True)
"""


def test_a_reader_neither_blocks_a_writer_nor_sees_its_file_change(store: Store) -> None:
    _write(store, "r", 10)
    store.publish()
    with _python(_READER, store.path) as reader:
        assert _said(reader) == "10"
        _write(store, "r", 5000)
        store.publish()
        assert store.query("SELECT count(*) FROM training_steps").rows == [(5000,)]
        _tell(reader)
        assert _said(reader) == "10"
    assert reader.returncode == 0


_HOLDER = """
import sys, time
from pathlib import Path
from reports.store import Store
with Store(Path(sys.argv[1])).write() as session:
    session.replace("training_steps", {"run_id": "held"}, STEPS)
    print("holding", flush=True)
    sys.stdin.readline()
""".replace("STEPS", _STEPS.replace("N", "3"))


def test_a_second_writer_waits_and_then_names_the_holder(tmp_path: Path) -> None:
    with _python(_HOLDER, tmp_path) as holder:
        assert _said(holder) == "holding"
        began = time.monotonic()
        with pytest.raises(StoreError, match=f"process {holder.pid}; waited 0.3 s"):
            _write(Store(tmp_path, timeout_seconds=0.3), "r", 1)
        assert time.monotonic() - began < 5
        _tell(holder)
        store = Store(tmp_path, timeout_seconds=30)
        _write(store, "mine", 1)  # waits for the holder to end
    store.publish()
    assert store.query("SELECT run_id, count(*) FROM training_steps GROUP BY ALL ORDER BY ALL").rows == [
        ("held", 3),
        ("mine", 1),
    ]


def test_writing_inside_writing_is_an_error_and_no_deadlock(tmp_path: Path) -> None:
    store = Store(tmp_path, timeout_seconds=0.2)
    with store.write(), pytest.raises(StoreError, match=f"process {os.getpid()}"), store.write():
        pass


def test_threads_of_one_process_write_and_read_at_once(store: Store) -> None:
    def write_and_read(number: int) -> int:
        _write(store, f"thread-{number}", 5)
        store.publish()
        return int(store.query("SELECT count(*) FROM training_steps").rows[0][0])

    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(write_and_read, range(8)))
    assert all(count >= 5 and count % 5 == 0 for count in seen)
    assert store.query("SELECT count(*) FROM training_steps").rows == [(40,)]


_KILLED = """
import os, signal, sys
from pathlib import Path
from reports.store import Store
store = Store(Path(sys.argv[1]))
with store._locked(), store._connected() as connection:  # a connection that never closes, as after a kill
    connection.execute("SET wal_autocheckpoint = '1TB'")
    from reports.session import Session
    for run in range(3):
        connection.execute("BEGIN TRANSACTION")
        Session(connection).replace("training_steps", {"run_id": str(run)}, STEPS)
        if run == 2:
            print("inserting", flush=True)
            sys.stdin.readline()
        connection.execute("COMMIT")
""".replace("STEPS", _STEPS.replace("N", "2000"))


def test_a_writer_killed_in_mid_insert_loses_only_what_it_had_not_committed(store: Store, tmp_path: Path) -> None:
    _write(store, "before", 7)
    store.publish()
    with _python(_KILLED, tmp_path) as writer:
        assert _said(writer) == "inserting"
        os.kill(writer.pid, signal.SIGKILL)
    log = tmp_path / "writer" / "results.duckdb.wal"
    assert log.stat().st_size > 0
    assert store.query("SELECT count(*) FROM training_steps").rows == [(7,)]  # published, as it was
    _write(store, "2", 2000)  # the same again, as a resumed study does
    _write(store, "2", 2000)
    store.publish()
    assert store.query("SELECT run_id, count(*) FROM training_steps GROUP BY ALL ORDER BY ALL").rows == [
        ("0", 2000),
        ("1", 2000),
        ("2", 2000),
        ("before", 7),
    ]
    assert not (tmp_path / "writer" / "before-replay").exists()


def test_a_log_that_cannot_be_replayed_is_kept(store: Store, tmp_path: Path) -> None:
    _write(store, "before", 7)
    store.publish()
    with _python(_KILLED, tmp_path) as writer:
        assert _said(writer) == "inserting"
        os.kill(writer.pid, signal.SIGKILL)
    log = tmp_path / "writer" / "results.duckdb.wal"
    damaged = bytearray(log.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    log.write_bytes(damaged)
    with pytest.raises(StoreError, match="Nothing was deleted"):
        _write(store, "r", 1)
    assert log.read_bytes() == damaged
    assert store.query("SELECT count(*) FROM training_steps").rows == [(7,)]
