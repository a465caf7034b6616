"""From a shard of passages to the columns that its suite looks at.

Great Expectations searches texts row by row in Python, and hashes every column it is given: 28 microseconds a row. Here
Arrow finds the suspects in one pass, Python looks at those alone, and what it finds becomes a column that is empty for
a good row and says for a bad one what is wrong. The suite then expects these columns to be empty.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from data_checks.errors import SuiteError

COLUMNS = ("passage_id", "title", "text", "page_id", "ordinal", "words", "start")
# Marks that no reader of a rendered page sees. An article about markup may show them in earnest.
MARKUP = (
    r"\{\{|\}\}|\[\[|\]\]|\{\||'''|(?:^|\s)\|-(?:\s|$)|&nbsp;|\|(?:thumb|thumbnail|frameless|upright|[0-9]+px)\b|"
    r"</?(?i:ref)[\s>/]|\b(?:File|Image):[^|\s]+\.[A-Za-z]{3,4}\|"
)
_TAGS = (
    "abbr|b|bdi|big|blockquote|br|caption|center|chem|cite|code|dd|del|div|dl|dt|em|font|gallery|h[1-6]|hr|i|"
    "includeonly|ins|kbd|li|math|mark|noinclude|nowiki|ol|onlyinclude|p|poem|pre|q|references|rp|rt|ruby|s|samp|score|"
    "section|small|source|span|strike|strong|sub|sup|syntaxhighlight|table|tbody|td|th|timeline|tr|tt|u|ul|var"
)
HTML = rf"</?(?i:{_TAGS})(?:\s+[A-Za-z:-]+\s*=[^<>]*)?\s*/?>|<!--|&(?:[a-z]{{2,8}}|#[0-9]{{1,7}}|#x[0-9a-fA-F]{{1,6}});"
CONTROL_CHARACTERS = r"[\x00-\x1f\x7f-\x9f]"
# An empty text, and the white space of str.split but for the single spaces that join words.
_ODD_SPACES = (
    r"^$|^ |  | $|[\x09-\x0d\x1c-\x1f\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]"
)
_RE2_CONTROL_CHARACTERS = r"[\x00-\x1f\x7f-\x{9f}]"
_SUSPECT_TEXT = "|".join((MARKUP, HTML, _RE2_CONTROL_CHARACTERS, _ODD_SPACES))
_PASSAGE_ID = r"^.+:[1-9][0-9]*:[0-9]+$"
_READY_MADE_ID = r"^.+:[0-9]+$"
_AROUND = 20  # characters shown on each side of what was found

_Rows = npt.NDArray[np.intp]


def passages_frame(table: pa.Table) -> pd.DataFrame:
    """The columns that ``passages_suite`` expects things of, one row a passage, in the order of ``table``.

    passage_id, title, page_id and words as they are; ``characters`` of the text; and a column for each thing that must
    not be, empty where it is not: ``undecodable`` (bytes that are no UTF-8, such as a lone surrogate), ``markup``,
    ``html``, ``control_characters`` and ``not_nfc`` (each with what stands there, in text or title), ``other_id``
    (passage ids that are not source:page:ordinal of their row, or source:number where the row
    came ready-made, with ``start`` -1), ``other_words`` (the words that the text really has), ``other_sha1`` (the
    hash that title and text really have, where the table has one in "text_sha1").
    Raises SuiteError where ``table`` lacks a column.
    """
    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        raise SuiteError(f"a table of passages needs the columns {', '.join(COLUMNS)}; {', '.join(missing)} is missing")
    title, bad_title = _decodable(table.column("title"))
    text, bad_text = _decodable(table.column("text"))
    suspects = _true(pc.match_substring_regex(text, _SUSPECT_TEXT))
    titles = _true(pc.match_substring_regex(title, _SUSPECT_TEXT))
    columns = {
        "passage_id": table.column("passage_id"),
        "title": title,
        "page_id": table.column("page_id"),
        "words": table.column("words"),
        "characters": pc.utf8_length(text),
        "undecodable": _column(len(text), bad_title | bad_text),
        "markup": _found(text, suspects, _search(MARKUP)),
        "html": _found(text, suspects, _search(HTML)),
        "control_characters": _either(title, titles, text, suspects, _search(CONTROL_CHARACTERS)),
        "not_nfc": _either(title, _not_ascii(title), text, _not_ascii(text), _not_nfc),
        "other_id": _other_id(table),
        "other_words": _other_words(text, table.column("words"), suspects),
        "other_sha1": _other_sha1(table),
    }
    return pa.table(columns).to_pandas()


def _decodable(strings: pa.ChunkedArray) -> tuple[pa.ChunkedArray, dict[int, str]]:
    """The strings with U+FFFD in the place of bytes that are no UTF-8, and these bytes by row."""
    strings = strings.cast(pa.large_string())
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid:
        pass
    else:
        return strings, {}
    found, decoded = {}, []
    for row, content in enumerate(strings.cast(pa.large_binary()).to_pylist()):
        text = None if content is None else content.decode("utf-8", errors="replace")
        if text is not None and text.encode() != content:
            found[row] = repr(content[:80])
        decoded.append(text)
    return pa.chunked_array([pa.array(decoded, pa.large_string())]), found


def _either(
    title: pa.ChunkedArray, titles: _Rows, text: pa.ChunkedArray, texts: _Rows, look: Callable[[str], str | None]
) -> pa.Array:
    """What ``look`` finds in the title or else in the text, of the rows that are worth a look."""
    in_text = _looked(text, texts, look)
    in_title = _looked(title, titles, look)
    return _column(len(text), in_text | {row: f"title: {found}" for row, found in in_title.items()})


def _found(text: pa.ChunkedArray, rows: _Rows, look: Callable[[str], str | None]) -> pa.Array:
    return _column(len(text), _looked(text, rows, look))


def _looked(strings: pa.ChunkedArray, rows: _Rows, look: Callable[[str], str | None]) -> dict[int, str]:
    values = strings.take(pa.array(rows)).to_pylist()
    found = ((int(row), look(value)) for row, value in zip(rows, values, strict=True))
    return {row: what for row, what in found if what is not None}


def _column(length: int, found: dict[int, str]) -> pa.Array:
    """A column of text that is empty but in these rows."""
    if not found:
        return pa.nulls(length, pa.string())
    values: list[str | None] = [None] * length
    for row, what in found.items():
        values[row] = what
    return pa.array(values, pa.string())


def _search(pattern: str) -> Callable[[str], str | None]:
    """A look for the first match, shown with what stands around it; control characters are shown as escapes."""
    compiled = re.compile(pattern)

    def look(text: str) -> str | None:
        match = compiled.search(text)
        return match and _visible(text[max(0, match.start() - _AROUND) : match.end() + _AROUND])

    return look


def _visible(text: str) -> str:
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _not_nfc(text: str) -> str | None:
    """What stands where the text first differs from its normal form C, None where it does not."""
    if unicodedata.is_normalized("NFC", text):
        return None
    normal = unicodedata.normalize("NFC", text)
    place = next((at for at, (a, b) in enumerate(zip(text, normal, strict=False)) if a != b), len(normal))
    shown = text[max(0, place - 1) : place + 3]
    return f"{shown} ({' '.join(f'U+{ord(char):04X}' for char in shown)})"


def _not_ascii(strings: pa.ChunkedArray) -> _Rows:
    return _true(pc.invert(pc.string_is_ascii(strings)))


def _other_id(table: pa.Table) -> pa.Array:
    """Passage ids that do not name their own page and ordinal, or, of a passage that came ready-made, a number."""
    ids = table.column("passage_id")
    page, ordinal = (table.column(name).cast(pa.string()) for name in ("page_id", "ordinal"))
    source = next((one.rsplit(":", 2)[0] for one in ids.slice(0, 1).to_pylist() if one), "")
    same = pc.equal(ids, pc.binary_join_element_wise(pa.scalar(source), page, ordinal, ":"))
    well_formed = pc.match_substring_regex(ids, _PASSAGE_ID)
    suspects = _true(pc.invert(pc.fill_null(pc.and_(same, well_formed), False)))
    taken = (column.take(pa.array(suspects)).to_pylist() for column in (ids, page, ordinal, table.column("start")))
    rows = zip(suspects, *taken, strict=True)
    return _column(
        len(ids), {int(row): one for row, one, *own in rows if one is not None and not _is_own_id(one, *own)}
    )


def _is_own_id(passage_id: str, page_id: str | None, ordinal: str | None, start: int | None) -> bool:
    if start == -1:
        return re.match(_READY_MADE_ID, passage_id) is not None
    return re.match(_PASSAGE_ID, passage_id) is not None and passage_id.endswith(f":{page_id}:{ordinal}")


def _other_words(text: pa.ChunkedArray, words: pa.ChunkedArray, suspects: _Rows) -> pa.Array:
    """How many words the text has, where that is another number than ``words``."""
    # Without odd spaces, which are suspects, a text has one word more than spaces.
    spaces = np.concatenate([_spaces(chunk) for chunk in text.chunks] or [np.empty(0, np.int64)])
    given = pc.fill_null(words.cast(pa.int64()), -1).to_numpy()
    rows = np.union1d(np.flatnonzero(spaces + 1 != given), suspects)
    values = zip(rows, text.take(pa.array(rows)).to_pylist(), words.take(pa.array(rows)).to_pylist(), strict=True)
    counted = ((int(row), len((value or "").split()), said) for row, value, said in values)
    return _column(len(text), {row: f"{count} words, not {said}" for row, count, said in counted if count != said})


def _other_sha1(table: pa.Table) -> pa.Array:
    """The SHA-1 of title, newline and text, where that is not what the table says."""
    if "text_sha1" not in table.column_names:
        return pa.nulls(table.num_rows, pa.string())
    bytes_of = (table.column(name).cast(pa.binary()).to_pylist() for name in ("title", "text"))
    rows = enumerate(zip(*bytes_of, table.column("text_sha1").to_pylist(), strict=True))
    hashed = ((row, _sha1(title or b"", text or b""), said) for row, (title, text, said) in rows)
    return _column(table.num_rows, {row: real for row, real, said in hashed if real != said})


def _sha1(title: bytes, text: bytes) -> str:
    return hashlib.sha1(title + b"\n" + text, usedforsecurity=False).hexdigest()


def _spaces(strings: pa.Array) -> npt.NDArray[np.int64]:
    """How many spaces each string has; half the time that ``count_substring`` takes."""
    if not len(strings):
        return np.empty(0, np.int64)
    _, offsets, content = strings.buffers()
    ends = np.frombuffer(offsets, np.int64)[strings.offset : strings.offset + len(strings) + 1]
    places = np.flatnonzero(np.frombuffer(content or b"", np.uint8) == ord(" "))
    return np.diff(np.searchsorted(places, ends))


def _true(mask: pa.ChunkedArray) -> _Rows:
    """The rows that are true; a missing value is not."""
    rows: _Rows = np.flatnonzero(pc.fill_null(mask, False).to_numpy())
    return rows
