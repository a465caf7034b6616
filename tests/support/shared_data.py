"""Where the real, unpublished test data lies, if this machine has it."""

import os
from pathlib import Path

import pytest

_DEFAULT = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def shared_data(*parts: str) -> Path:
    """A file of the real data; skips the calling test with the reason where it is absent.

    The folder is ``../shared/data`` beside the repository, or what OPENBOOK_TEST_DATA names.
    """
    path = Path(os.environ.get("OPENBOOK_TEST_DATA", _DEFAULT), *parts)
    if not path.exists():
        pytest.skip(f"real data not here: {path} (set OPENBOOK_TEST_DATA)")
    return path
