"""A study of one source, and of whatever else a test adds to it."""

from pathlib import Path

_STUDY = """
name = "s"
title = "s"
[sources.wiki]
path = "{path}"
{more}
[corpora]
{corpora}
[tasks]
[models]
"""


def write_source_study(folder: Path, path: str, more: str = "", corpora: str = "") -> Path:
    """Write ``study.toml``: ``more`` goes below the source, ``corpora`` below their table; returns the file."""
    study = folder / "study.toml"
    study.write_text(_STUDY.format(path=path, more=more, corpora=corpora), encoding="utf-8")
    return study
