"""Where the small pretrained models lie that install as packages, if this machine has them."""

import importlib.util
from pathlib import Path

import pytest


def packaged(module: str, *parts: str) -> Path:
    """A file or folder of a package; skips the calling test where the package is not installed."""
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        pytest.skip(f"the package of {module} is not installed (requirements-models.txt)")
    return Path(found.origin).parent.joinpath(*parts)
