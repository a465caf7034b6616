"""Which code belongs to a stage, and which changes of it count."""

from pathlib import Path

import pytest

from flows.code_fingerprint import code_fingerprint

FILES = {
    "rag/__init__.py": "",
    "rag/errors.py": "class RagError(Exception):\n    '''All of them.'''\n",
    "rag/text.py": "from rag.errors import RagError\n\ndef clean(text: str) -> str:\n    return text.strip()\n",
    "rag/corpus/__init__.py": "from rag.corpus.dump import read\n"
    "from rag.corpus.other import x\n__all__ = ['read', 'x']\n",
    "rag/corpus/dump.py": "from ..text import clean\nfrom . import wikitext\n"
    "def read() -> str:\n    return clean('')\n",
    "rag/corpus/wikitext.py": "import json\nfrom typing import TYPE_CHECKING\n"
    "if TYPE_CHECKING:\n    from rag import late\n",
    "rag/corpus/other.py": "x = 1\n",
    "rag/late.py": "def f() -> None:\n    import data_checks.suites\n    import flows.cli\n    import torch\n",
    "data_checks/__init__.py": "",
    "data_checks/suites.py": "y = 2\n",
}


def write(root: Path, changes: dict[str, str] | None = None) -> Path:
    for name, text in {**FILES, **(changes or {})}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def changed(tmp_path: Path, name: str, text: str, module: str = "rag.corpus.dump") -> set[str]:
    before = code_fingerprint([module], write(tmp_path / "before"))
    after = code_fingerprint([module], write(tmp_path / "after", {name: text}))
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def test_the_closure_follows_every_kind_of_import(tmp_path: Path) -> None:
    reached = code_fingerprint(["rag.corpus.dump"], write(tmp_path))
    expected = ["data_checks.suites", "rag.corpus.dump", "rag.corpus.wikitext", "rag.errors", "rag.late", "rag.text"]
    assert list(reached) == expected


def test_a_name_from_a_package_reaches_what_the_package_exports(tmp_path: Path) -> None:
    root = write(tmp_path, {"rag/user.py": "from rag.corpus import read\n"})
    assert {"rag.corpus", "rag.corpus.other", "rag.corpus.dump"} <= code_fingerprint(["rag.user"], root).keys()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rag/text.py", "# why\n" + FILES["rag/text.py"].replace("return", "return  ")),
        ("rag/text.py", FILES["rag/text.py"].replace(":\n", ":\n    '''Without spaces.'''\n")),
        ("rag/errors.py", "class RagError(Exception):\n    pass\n"),
        ("rag/corpus/other.py", "x = 3\n"),
        ("rag/corpus/__init__.py", "from rag.corpus.dump import read\n__all__ = ['read']\n"),
    ],
)
def test_comments_layout_docstrings_and_neighbours_do_not_count(tmp_path: Path, name: str, text: str) -> None:
    assert changed(tmp_path, name, text) == set()


@pytest.mark.parametrize(
    ("name", "text", "module"),
    [
        ("rag/text.py", FILES["rag/text.py"].replace("strip", "lstrip"), "rag.text"),
        ("rag/text.py", FILES["rag/text.py"].replace("text: str", "text: object"), "rag.text"),
        ("data_checks/suites.py", "y = 3\n", "data_checks.suites"),
        ("rag/corpus/__init__.py", "import warnings\nwarnings.simplefilter('error')\n", "rag.corpus"),
    ],
)
def test_a_change_of_what_the_code_does_counts(tmp_path: Path, name: str, text: str, module: str) -> None:
    assert changed(tmp_path, name, text) == {module}


def test_an_import_that_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    root = write(tmp_path, {"rag/user.py": "import rag.missing\n"})
    with pytest.raises(ModuleNotFoundError, match=r"no file for the module rag\.missing"):
        code_fingerprint(["rag.user"], root)


def test_the_real_packages_are_found() -> None:
    assert {"rag.config", "rag.records", "rag.errors"} <= code_fingerprint(["rag.config"]).keys()
