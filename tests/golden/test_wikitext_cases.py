"""Wikitext beside the text that a reader of the rendered page sees.

A case may have ``options``: the keys of the passages of a study, the local names of the wiki's namespaces ``file`` and
``category``, and the name ``dbname`` of its database.
"""

import tomllib
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from rag.config import PassageConfig
from rag.corpus.wikitext import RenderOptions, plain_text
from rag.corpus.wikitext.namespaces import render_options

_CASES = tomllib.loads(Path(__file__).with_name("wikitext_cases.toml").read_text(encoding="utf-8"))["case"]


def _options(file: str = "File", category: str = "Category", dbname: str = "", **config: bool) -> RenderOptions:
    return render_options(PassageConfig(**config), {6: file, 14: category}, dbname)


@pytest.mark.parametrize("case", _CASES, ids=[case["name"] for case in _CASES])
def test_plain_text_is_what_a_reader_sees(case: dict[str, Any]) -> None:
    expected = unicodedata.normalize("NFC", case["text"]).removeprefix("\n")
    assert plain_text(case["wikitext"], _options(**case.get("options", {}))) == expected


def test_cases_have_names_of_their_own() -> None:
    names = [case["name"] for case in _CASES]
    assert len(set(names)) == len(names) >= 110
