"""What the documents say is so: the file map, the commands, the make targets, the layers."""

import re
import tomllib
from pathlib import Path

from flows.cli import app
from rag.config import parse_study
from reports.store import Store
from tests.support.file_map import ROOT, with_map


def test_the_file_map_has_a_line_for_every_file() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_map(readme) == readme, "run: python -m tests.support.file_map"


def test_every_module_says_what_it_is() -> None:
    silent = [
        path.relative_to(ROOT).as_posix()
        for package in ("flows", "rag", "data_checks", "reports")
        for path in (ROOT / package).rglob("*.py")
        if path.name != "__init__.py" and not path.read_text(encoding="utf-8").startswith('"""')
    ]
    assert silent == []


def test_the_readme_names_every_command_and_no_other() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^openbook (\w+)", readme, flags=re.MULTILINE))
    assert named == {command.callback.__name__ for command in app.registered_commands if command.callback}


def test_the_readme_names_only_targets_that_make_has() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, flags=re.MULTILINE))
    documents = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "ARCHITECTURE.md")]
    assert {name for text in documents for name in re.findall(r"`?make ([a-z]+)[`\s]", text)} <= targets


def test_the_studies_that_the_readme_shows_are_studies() -> None:
    """All of its TOML in one file, with what it leaves to the reader."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = "".join(re.findall(r"^```toml\n(.*?)^```", readme, flags=re.MULTILINE | re.DOTALL))
    before = """
name = "shown"
title = "Shown"
[sources.enwiki-before]
path = "wikimedia:enwiki/20261001"
"""
    after = """
[corpora]
wikipedia = ["enwiki"]
[tasks.qa]
reader = "open-qa"
train = "train.jsonl"
test = "test.jsonl"
"""
    study = parse_study(tomllib.loads(before + shown + after))
    assert len(study.models) == 2
    assert study.tasks["fever"].calibrate


def test_the_queries_that_the_readme_shows_fit_the_schema(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    queries = re.findall(r'^openbook query "(.+)"$', readme, flags=re.MULTILINE)
    store = Store(tmp_path)
    store.publish()
    assert len(queries) > 4
    for query in queries:
        store.query(query)
