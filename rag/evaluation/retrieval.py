"""Did retrieval find it: the answer's text in the passages, and the gold pages among them.

What is retrieved for a question is a list, best first, and each metric says whether it counts the places of that list
(a page that stands there five times counts five times) or the different pages in it.
"""

import unicodedata
from collections.abc import Collection, Iterable, Sequence

from rag.errors import DataError
from rag.text import compile_pattern, decompose, word_tokens

Retrieved = Sequence[Sequence[str]]  # of each question the passages, or the ids or titles of their pages, best first


def answer_in_passage(passage: str, answers: Sequence[str], regex: bool = False) -> bool:
    """Whether the passage holds any of the answers.

    Strings: the answer's words are consecutive words of the passage (NFD, any case). Patterns: found anywhere in it.
    An answer without any word holds nothing (DPR's script finds it in every passage).
    Source: ``has_answer`` of DPR. Raises DataError for a pattern that is not a regular expression.

    >>> answer_in_passage("It was built in Zürich, in 1907.", ["Zürich in", "zürich, in"])
    True
    """
    if regex:
        text = decompose(passage)
        return any(compile_pattern(pattern).search(text) is not None for pattern in answers)
    return _holds_any(_padded(passage), [_padded(answer) for answer in answers])


def first_rank_with_answer(passages: Iterable[str], answers: Sequence[str], regex: bool = False) -> int | None:
    """Rank, from 0, of the first passage that holds any of the answers; None where none does.

    >>> first_rank_with_answer(["Rome is old.", "Lima is the capital of Peru."], ["lima"])
    1
    """
    if regex:
        hits = (answer_in_passage(passage, answers, regex=True) for passage in passages)
    else:
        padded = [_padded(answer) for answer in answers]
        hits = (_holds_any(_padded(passage), padded) for passage in passages)
    return next((rank for rank, hit in enumerate(hits) if hit), None)


def answer_in_passage_at_k(passages: Retrieved, answers: Sequence[Sequence[str]], k: int, regex: bool = False) -> float:
    """Share of the questions of which one of the first k passages holds an answer, as ``answer_in_passage`` says.

    Source: the top-k accuracy of DPR. Raises DataError if the lengths differ or k is below 1.

    >>> answer_in_passage_at_k([["Rome is old.", "It is in Peru."], ["Lima"]], [["Peru"], ["Quito"]], k=2)
    0.5
    """
    _check(len(passages), len(answers), k, "answers")
    pairs = zip(passages, answers, strict=True)
    return sum(first_rank_with_answer(found[:k], gold, regex) is not None for found, gold in pairs) / len(answers)


def recall_at_k(retrieved: Retrieved, gold: Sequence[Collection[str]], k: int) -> float:
    """Mean over questions of the share of their gold pages that are among the first k retrieved.

    |gold and retrieved[:k]| / |gold|, each page counted once; ids or titles, compared as they are.
    (KILT's recall@k is another number: of evidence sets, with each whole set counted as one place.)
    Raises DataError if the lengths differ, k is below 1 or a question has no gold page.

    >>> recall_at_k([["Paris", "Paris", "Lyon"], ["Rome"]], [{"Paris"}, {"Rome", "Milan"}], k=3)
    0.75
    """
    _check_gold(retrieved, gold, k)
    shares = [len(set(pages) & set(found[:k])) / len(set(pages)) for found, pages in zip(retrieved, gold, strict=True)]
    return sum(shares) / len(shares)


def precision_at_k(retrieved: Retrieved, gold: Sequence[Collection[str]], k: int) -> float:
    """Mean over questions of the share of the first k places that hold a gold page, however often each stands.

    Of a list with fewer than k places the others count as wrong. Raises DataError as ``recall_at_k``.

    >>> precision_at_k([["Paris", "Paris", "Paris", "Lyon", "Paris"]], [{"Paris"}], k=5)
    0.8
    """
    _check_gold(retrieved, gold, k)
    hits = [sum(page in pages for page in found[:k]) for found, pages in zip(retrieved, gold, strict=True)]
    return sum(hits) / (k * len(hits))


def gold_title_at_k(retrieved: Retrieved, gold: Sequence[Collection[str]], k: int) -> float:
    """Share of the questions with any of their gold pages among the first k places.

    Source: what the paper reports of FEVER (section 4.4: 71 % at 1, 90 % at 10). Raises DataError as ``recall_at_k``.

    >>> gold_title_at_k([["Lyon", "Paris"], ["Rome"]], [{"Paris"}, {"Rome", "Milan"}], k=1)
    0.5
    """
    _check_gold(retrieved, gold, k)
    return sum(not set(pages).isdisjoint(found[:k]) for found, pages in zip(retrieved, gold, strict=True)) / len(gold)


def evidence_at_k(retrieved: Retrieved, evidence: Sequence[Sequence[Collection[str]]], k: int) -> float:
    """Share of the questions with all pages of one of their evidence sets among the first k places.

    Source: the rule of FEVER's score, on pages in the place of sentences. Raises DataError as ``recall_at_k``; no
    evidence set may be empty.

    >>> evidence_at_k([["Lyon", "Paris"]], [[{"Paris", "Rome"}, {"Lyon"}]], k=1)
    1.0
    """
    _check_evidence(retrieved, evidence, k)
    pairs = zip(retrieved, evidence, strict=True)
    return sum(any(set(pages) <= set(found[:k]) for pages in sets) for found, sets in pairs) / len(evidence)


def r_precision(retrieved: Retrieved, evidence: Sequence[Sequence[Collection[str]]]) -> float:
    """Mean over questions of the largest R-precision over their evidence sets.

    |set and the first R different pages| / R with R = |set|. Source: ``rprecision`` of KILT. Raises DataError as
    ``evidence_at_k``.

    >>> r_precision([["Paris", "Paris", "Lyon"], ["Milan", "Rome"]], [[{"Paris", "Lyon"}], [{"Rome"}]])
    0.5
    """
    _check_evidence(retrieved, evidence, 1)
    pairs = zip(retrieved, evidence, strict=True)
    return sum(max(_set_precision(found, set(pages)) for pages in sets) for found, sets in pairs) / len(evidence)


def _set_precision(found: Sequence[str], pages: set[str]) -> float:
    return len(pages & set(list(dict.fromkeys(found))[: len(pages)])) / len(pages)


def reciprocal_rank(rank: int | None) -> float:
    """1 / (rank + 1) for a rank from 0; 0 where nothing right was retrieved. Its mean over questions is the MRR.

    >>> [reciprocal_rank(0), reciprocal_rank(3), reciprocal_rank(None)]
    [1.0, 0.25, 0.0]
    """
    return 0.0 if rank is None else 1 / (rank + 1)


def first_rank_with_page(found: Iterable[str], gold: Collection[str]) -> int | None:
    """Rank, from 0, of the first place with any of the gold pages; None where there is none.

    >>> first_rank_with_page(["Lyon", "Paris"], {"Paris"})
    1
    """
    return next((rank for rank, page in enumerate(found) if page in gold), None)


def title_key(title: str) -> str:
    """A title as titles are compared: NFC, underscores as spaces, white space collapsed, the first letter upper case.

    >>> title_key("iPod_nano") == title_key("IPod  nano")
    True
    """
    words = " ".join(unicodedata.normalize("NFC", title.replace("_", " ")).split())
    first = words[:1].upper()
    return (first if len(first) == 1 else words[:1]) + words[1:]  # "ß" has no upper case of one letter


def _check(n_retrieved: int, n_gold: int, k: int, what: str) -> None:
    if n_retrieved != n_gold or not n_gold or k < 1:
        raise DataError(f"a metric at k={k} needs {what} for each of {n_retrieved} questions, got {n_gold}")


def _check_gold(retrieved: Retrieved, gold: Sequence[Collection[str]], k: int) -> None:
    _check(len(retrieved), len(gold), k, "gold pages")
    _refuse_empty([row for row, pages in enumerate(gold) if not pages])


def _check_evidence(retrieved: Retrieved, evidence: Sequence[Sequence[Collection[str]]], k: int) -> None:
    _check(len(retrieved), len(evidence), k, "evidence sets")
    _refuse_empty([row for row, sets in enumerate(evidence) if not sets or not all(sets)])


def _refuse_empty(rows: list[int]) -> None:
    if rows:
        raise DataError(f"question {rows[0]} has no gold page; leave out questions without one and count them")


def answer_coverage(answers: Sequence[Sequence[str]], texts: Iterable[str]) -> list[bool]:
    """For each question whether any of the texts holds one of its answers, by the rule of ``answer_in_passage``.

    One pass over the texts; a question once found is not looked for again.
    """
    padded = [[_padded(answer) for answer in question] for question in answers]
    found = [False] * len(padded)
    missing = list(range(len(padded)))
    for text in texts:
        if not missing:
            break
        words = _padded(text)
        for row in missing:
            found[row] = _holds_any(words, padded[row])
        missing = [row for row in missing if not found[row]]
    return found


def _padded(text: str) -> str:
    """The words with a blank around each, so that a run of words is a substring; '' where there is none."""
    words = word_tokens(text)
    return f" {' '.join(words)} " if words else ""


def _holds_any(passage: str, answers: Sequence[str]) -> bool:
    return any(answer != "" and answer in passage for answer in answers)
