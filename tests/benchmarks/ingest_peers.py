"""The peers of the ingest benchmark: where they are, and how many of the golden cases each gets right.

WikiExtractor is under the AGPL: it is only ever run as a program, never imported.
"""

import html
import importlib.util
import json
import shutil
import subprocess
import sys
import tomllib
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_CASES = Path(__file__).resolve().parents[1] / "golden" / "wikitext_cases.toml"
_INSTALL = (
    "{} is not installed; install the peers of the benchmarks with: pip install --editable '.[bench]'\n"
    "(WikiExtractor may be in any other environment: --wikiextractor PATH)"
)
_DUMP = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" xml:lang="en">
  <siteinfo>
    <sitename>Wikipedia</sitename>
    <dbname>enwiki</dbname>
    <base>https://en.wikipedia.org/wiki/Main_Page</base>
    <namespaces>
      <namespace key="0" case="first-letter" />
      <namespace key="6" case="first-letter">File</namespace>
      <namespace key="10" case="first-letter">Template</namespace>
      <namespace key="14" case="first-letter">Category</namespace>
    </namespaces>
  </siteinfo>
{pages}</mediawiki>
"""
_PAGE = """  <page>
    <title>Case {number}</title>
    <ns>0</ns>
    <id>{number}</id>
    <revision>
      <id>{number}</id>
      <timestamp>2016-05-01T00:00:00Z</timestamp>
      <text xml:space="preserve">{text}</text>
    </revision>
  </page>
"""


class CaseCounts(NamedTuple):
    """Of ``cases``, how many each gets right when white space is not looked at."""

    cases: int
    ours: int
    wikiextractor: int
    mwparserfromhell: int


def find_wikiextractor(given: str | None) -> str:
    """The program: as given, on PATH, or beside this Python."""
    beside = Path(sys.executable).with_name("wikiextractor")
    found = shutil.which(given or "wikiextractor") or (None if given else shutil.which(beside))
    if not found:
        raise SystemExit(_INSTALL.format(f"WikiExtractor ({given})" if given else "WikiExtractor"))
    return found


def require_mwparserfromhell() -> None:
    """Stop with what to do where it is missing."""
    if importlib.util.find_spec("mwparserfromhell") is None:
        raise SystemExit(_INSTALL.format("mwparserfromhell"))


def wikiextractor_command(program: str, dump: Path, out: Path, *options: str) -> list[str]:
    """How WikiExtractor is run here: one process that extracts, and no progress on the screen."""
    return [program, str(dump), "--processes", "1", "-o", str(out), "-q", *options]


def count_cases(program: str, folder: Path) -> CaseCounts:
    """All three on the golden cases that need no option of ours."""
    from mwparserfromhell import parse

    from rag.corpus.wikitext import plain_text

    cases = [case for case in tomllib.loads(_CASES.read_text(encoding="utf-8"))["case"] if "options" not in case]
    wanted = [_words(case["text"]) for case in cases]
    texts = [case["wikitext"] for case in cases]
    theirs = _by_wikiextractor(program, texts, folder)

    def right(plain: Callable[[str], str]) -> int:
        return sum(_words(plain(text)) == words for text, words in zip(texts, wanted, strict=True))

    extracted = sum(_words(theirs.get(number, "")) == words for number, words in enumerate(wanted, 1))
    return CaseCounts(len(cases), right(plain_text), extracted, right(lambda text: str(parse(text).strip_code())))


def _by_wikiextractor(program: str, texts: list[str], folder: Path) -> dict[int, str]:
    dump, out = folder / "cases.xml", folder / "cases"
    shutil.rmtree(out, ignore_errors=True)
    pages = (_PAGE.format(number=number, text=html.escape(text)) for number, text in enumerate(texts, 1))
    dump.write_text(_DUMP.format(pages="".join(pages)), encoding="utf-8")
    command = wikiextractor_command(program, dump, out, "--json")
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    lines = [line for path in sorted(out.rglob("wiki_*")) for line in path.read_text(encoding="utf-8").split("\n")]
    pages_found = [json.loads(line) for line in lines if line]
    # It escapes "<" and "&" in what it writes.
    return {int(page["id"]): html.unescape(page["text"]) for page in pages_found}


def _words(text: str) -> list[str]:
    return unicodedata.normalize("NFC", text).split()
