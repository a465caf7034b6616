"""Did retrieval find it: the answer's text in the passages, and the gold pages among them."""

from collections.abc import Collection, Iterable, Sequence

from rag.errors import DataError
from rag.evaluation.answers import compile_pattern
from rag.text import decompose, word_tokens


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


def recall_at_k(retrieved: Sequence[Sequence[str]], gold: Sequence[Collection[str]], k: int) -> float:
    """Mean over questions of the share of their gold pages that are among the first k retrieved.

    |gold and retrieved[:k]| / |gold|, each page counted once; ids or titles, compared as they are.
    Raises DataError if the lengths differ, k is below 1 or a question has no gold page.

    >>> recall_at_k([["Paris", "Paris", "Lyon"], ["Rome"]], [{"Paris"}, {"Rome", "Milan"}], k=3)
    0.75
    """
    if len(retrieved) != len(gold) or not gold or k < 1:
        raise DataError(f"recall at k={k} needs gold pages for each of {len(retrieved)} questions, got {len(gold)}")
    empty = next((row for row, pages in enumerate(gold) if not pages), None)
    if empty is not None:
        raise DataError(f"question {empty} has no gold page; leave out questions without one and count them")
    shares = [len(set(pages) & set(found[:k])) / len(set(pages)) for found, pages in zip(retrieved, gold, strict=True)]
    return sum(shares) / len(shares)


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
