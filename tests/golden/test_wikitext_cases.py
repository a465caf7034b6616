"""Wikitext beside the text that a reader of the rendered page sees."""

import tomllib
import unicodedata
from pathlib import Path

import pytest

from rag.corpus.wikitext import plain_text

_CASES = tomllib.loads(Path(__file__).with_name("wikitext_cases.toml").read_text(encoding="utf-8"))["case"]


@pytest.mark.parametrize("case", _CASES, ids=[case["name"] for case in _CASES])
def test_plain_text_is_what_a_reader_sees(case: dict[str, str]) -> None:
    expected = unicodedata.normalize("NFC", case["text"]).removeprefix("\n")
    assert plain_text(case["wikitext"]) == expected
