"""The training benchmark runs, and both of its sides have the same loss and gradients on the same inputs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration


def test_a_small_run_ends_with_its_ratios() -> None:
    command = [sys.executable, "-m", "tests.benchmarks.train_step", "--quick"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    shown = {line["measurement"] for line in lines}
    assert {"machine", "ours", "hf", "hf without text", "peak memory", "text from memory", "questions"} <= shown
    assert {line.get("family") for line in lines} >= {"rag-sequence", "rag-token"}
    ratios = lines[-1]["ratios"]
    assert min(ratios["vs_hf"], ratios["vs_hf_without_text"], ratios["peak_memory_vs_hf"]) > 0
    assert ratios["loss_difference"] < 1e-5
    assert 0 < ratios["gradient_difference"] < 1e-3
