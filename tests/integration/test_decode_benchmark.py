"""The decoding benchmark runs, and its two sides find the same answers with the same weights."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration


def test_a_small_run_ends_with_its_ratios_and_both_sides_agree() -> None:
    command = [sys.executable, "-m", "tests.benchmarks.decode", "--quick", "--threads", "1"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    ratios = lines[-1]["ratios"]
    expected = {"sequence_thorough_vs_hf", "sequence_fast_vs_hf", "token_beam_vs_hf", "bf16_vs_f32"}
    assert expected <= set(ratios)
    assert min(ratios.values()) > 0
    agreement = {line["mode"]: line for line in lines if line["measurement"] == "agreement"}
    assert set(agreement) == {"thorough", "fast", "token"}
    assert agreement["thorough"]["theirs_better"] == agreement["token"]["theirs_better"] == 0
    assert agreement["token"]["same"] == 2
