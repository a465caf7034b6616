"""Hashes of input files are remembered, and forgotten when the file changes."""

import hashlib
import os
from pathlib import Path

import pytest

from flows.input_hashes import InputHashes


def test_a_file_is_read_once_and_again_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = tmp_path / "dump.xml"
    dump.write_text("one")
    first = InputHashes(tmp_path / "memory" / "inputs.json").sha256(dump)
    assert first == hashlib.sha256(b"one").hexdigest()
    again = InputHashes(tmp_path / "memory" / "inputs.json")
    monkeypatch.setattr("flows.input_hashes.file_sha256", lambda _: "read again")
    assert again.sha256(dump) == first
    dump.write_text("two")
    os.utime(dump, ns=(1, 1))
    assert again.sha256(dump) == "read again"


def test_a_folder_is_its_names_and_bytes(tmp_path: Path) -> None:
    hashes = InputHashes(tmp_path / "inputs.json")
    model = tmp_path / "model"
    (model / "part").mkdir(parents=True)
    (model / "part" / "a.json").write_text("{}")
    before = hashes.sha256(model)
    (model / ".cache").write_text("x")
    assert hashes.sha256(model) == before
    (model / "part" / "a.json").rename(model / "part" / "b.json")
    assert hashes.sha256(model) != before


def test_a_damaged_memory_costs_time_only(tmp_path: Path) -> None:
    memory = tmp_path / "inputs.json"
    memory.write_text("{half")
    (tmp_path / "file").write_text("one")
    assert InputHashes(memory).sha256(tmp_path / "file") == hashlib.sha256(b"one").hexdigest()
