"""A build's memory stays near the index's own: nothing inside FAISS grows by doubling, and samples are bounded."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rag.config import IndexKind
from rag.retrieval.index_kinds import ADD_ROWS, KINDS, build_bytes
from tests.support.index_memory import CONFIG

pytestmark = pytest.mark.integration

ROWS, DIM = 40_000, 256
BLOCK = 4 * DIM * ADD_ROWS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("vectors")
    np.save(made / "vectors.npy", np.random.default_rng(0).standard_normal((ROWS, DIM), np.float32).astype(np.float16))
    return made


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("kind", KINDS)
def test_peak_memory_of_a_build(kind: IndexKind, folder: Path) -> None:
    command = [sys.executable, "-m", "tests.support.index_memory", kind, str(ROWS), str(DIM), str(folder)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert found["peak"] <= build_bytes(kind, ROWS, DIM, CONFIG)
    if KINDS[kind].store == "vectors":  # the others learn from samples that are larger than so small an index
        assert found["peak"] <= 1.25 * found["index"] + 2 * BLOCK
