"""FEVER: one JSON object a line, ``{"id", "claim", "label", "evidence": [[[id, id, page, sentence], ...], ...]}``."""

import unicodedata
from pathlib import Path
from typing import Any

from rag.errors import DataError
from rag.records import Question
from rag.tasks.taskfile import Row, TaskFile, checked_text, collect, identifier_of, json_rows, text_of
from rag.text import TREEBANK_ESCAPES

LABELS = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")


def read(path: Path) -> TaskFile:
    """The claims of a FEVER file with their label as the one answer and the pages of their evidence.

    The test files, which have no label, give rejects only. Raises DataError if the file cannot be read.
    """
    return collect(path, json_rows(path), _question)


def page_title(page: str) -> str:
    """The title of a page as Wikipedia writes it, in NFC.

    >>> page_title("Soul_Food_-LRB-film-RRB-")
    'Soul Food (film)'
    """
    for escape, character in TREEBANK_ESCAPES.items():
        page = page.replace(escape, character)
    return unicodedata.normalize("NFC", page.replace("_", " "))


def _question(row: Row) -> Question:
    question_id = identifier_of(row.fields, "id")
    claim = text_of(row.fields, "claim")
    label = " ".join(text_of(row.fields, "label").upper().split())
    if label not in LABELS:
        raise DataError(f"label {row.fields['label']!r} is none of {', '.join(LABELS)}")
    evidence = _evidence(row.fields.get("evidence"))
    titles = tuple(dict.fromkeys(page for pages in evidence for page in pages))
    return Question(question_id, "fever", claim, (label,), titles, evidence)


def _evidence(evidence: Any) -> tuple[tuple[str, ...], ...]:
    """The pages of each evidence set, no set twice; none where a claim's evidence is given as text instead."""
    if not isinstance(evidence, list):
        return ()
    try:
        sets = [[page for _, _, page, _ in group if page is not None] for group in evidence]
    except (TypeError, ValueError) as error:
        raise DataError("'evidence' is not a list of sets of [annotation, evidence, page, sentence]") from error
    different: dict[frozenset[str], tuple[str, ...]] = {}
    for pages in sets:
        titles = tuple(dict.fromkeys(page_title(checked_text(page, "evidence page")) for page in pages))
        different.setdefault(frozenset(titles), titles)
    return tuple(filter(None, different.values()))
