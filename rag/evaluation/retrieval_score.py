"""A retriever alone: from questions and the passages it found to metrics, each with its n, its errors and an interval.

Joined by question id, never by position. A question that was not asked is an error that is counted; one for which
nothing was found was asked, and missed. A question without gold of a kind is left out of the metrics that need it.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from rag.errors import DataError
from rag.evaluation.retrieval import (
    evidence_at_k,
    first_rank_with_answer,
    first_rank_with_page,
    gold_title_at_k,
    r_precision,
    recall_at_k,
    reciprocal_rank,
    title_key,
)
from rag.evaluation.scorer import Scorer, Scores, Values, refuse_repeats
from rag.records import Question

GOLD_TITLE_AT = (1, 10)  # as the paper reports it


class ScoredPassage(NamedTuple):
    """One passage that a retriever found."""

    text: str
    title: str
    score: float


class Judged(NamedTuple):
    """What is left of a question's passages once they have been compared with its gold."""

    question: Question
    answer_rank: int | None  # from 0, of the first passage with an answer; None also where answers are no such texts
    pages: tuple[str, ...]  # of every passage, best first, as ``title_key``


def score_retrieval(
    questions: Sequence[Question],
    retrieved: Mapping[str, Sequence[ScoredPassage]],
    at: Sequence[int],
    patterns: bool,
    seed: int,
) -> Scores:
    """The metrics of what was ``retrieved``, by question id and best first, for the questions of one task.

    open-qa: answer_in_passage_at_{k} and answer_mrr; with ``patterns`` the answers are regular expressions. Questions
    that name gold pages: gold_title_at_{1,10}, evidence_at_{k}, recall_at_{k}, r_precision and title_mrr. A k that no
    question has passages for is left out with a note. Raises DataError for a duplicate or unknown id, for no question,
    and for passages that are not in order of their scores.
    """
    known = {question.question_id for question in questions}
    unknown = [question_id for question_id in retrieved if question_id not in known]
    if unknown:
        raise DataError(f"passages of {len(unknown)} ids answer no question, the first is {unknown[0]!r}")
    asked = [question for question in questions if question.question_id in retrieved]
    judged = (judge(question, retrieved[question.question_id], patterns) for question in asked)
    return score_judged(questions, judged, at, patterns, seed)


def judge(question: Question, passages: Sequence[ScoredPassage], patterns: bool) -> Judged:
    """Compare passages with the question's gold, so that their texts need not be kept.

    Raises DataError where a later passage has the larger score: read backwards, a ranking gives plausible numbers.
    """
    for before, after in pairwise(passages):
        if not before.score >= after.score:
            raise DataError(
                f"the passages of question {question.question_id!r} are not sorted by score: {before.score} stands "
                f"before {after.score}; put the best first"
            )
    texts = (passage.text for passage in passages)
    rank = first_rank_with_answer(texts, question.answers, patterns) if question.task == "open-qa" else None
    return Judged(question, rank, tuple(title_key(passage.title) for passage in passages))


def score_judged(
    questions: Sequence[Question], judged: Iterable[Judged], at: Sequence[int], patterns: bool, seed: int
) -> Scores:
    """``score_retrieval`` for questions that were judged one by one.

    Raises DataError for a duplicate id, for no question, and for a k below 1.
    """
    if min(at, default=0) < 1:
        raise DataError(f"metrics at {', '.join(map(str, at)) or 'nothing'}: give ranks of 1 and more")
    refuse_repeats("question", [question.question_id for question in questions])
    found = {one.question.question_id: one for one in judged}
    depth = max((len(one.pages) for one in found.values()), default=0)
    reached = [k for k in sorted(set(at)) if k <= depth]
    notes = _notes(questions, found, at, reached, depth)
    if not depth:
        return Scores([], [], [*notes, "no passage was retrieved: there is nothing to score"])
    answers, pages = (
        _Group([one for one in questions if belongs(one)], found, reached, depth, seed)
        for belongs in (_has_answers, _has_pages)
    )
    if answers.questions:
        answers.score_answers(patterns)
    if pages.questions:
        pages.score_pages()
    both = (answers.scorer, pages.scorer)
    return Scores(
        [metric for scorer in both for metric in scorer.metrics],
        [value for scorer in both for value in scorer.per_question],
        [*notes, *(note for scorer in both for note in scorer.notes)],
    )


def _has_answers(question: Question) -> bool:
    """Whether the answers are texts that a passage could hold; a label or the wording of a clue is none."""
    return question.task == "open-qa"


def _has_pages(question: Question) -> bool:
    return bool(question.titles)


class _Group:
    """The questions that have one kind of gold, and those of them that were asked."""

    def __init__(
        self, questions: list[Question], found: Mapping[str, Judged], at: Sequence[int], depth: int, seed: int
    ) -> None:
        self.questions = questions
        self._at, self._depth = at, depth
        self._ids = [one.question_id for one in questions if one.question_id in found]
        self._judged = [found[question_id] for question_id in self._ids]
        self.scorer = Scorer(len(questions) - len(self._ids), seed)

    def score_answers(self, patterns: bool) -> None:
        rule = f"match:{'regex-search' if patterns else 'dpr-string'}|agg:any-passage-any-answer"
        ranks = [one.answer_rank for one in self._judged]
        for k in self._at:
            hits = [float(rank is not None and rank < k) for rank in ranks]
            self._share(f"answer_in_passage_at_{k}", hits, f"{rule}|n_docs:{k}")
        self._mean("answer_mrr", [reciprocal_rank(rank) for rank in ranks], f"{rule}|n_docs:{self._depth}")

    def score_pages(self) -> None:
        found = [one.pages for one in self._judged]
        gold = [set(map(title_key, one.question.titles)) for one in self._judged]
        sets = [[set(map(title_key, pages)) for pages in one.question.evidence] for one in self._judged]
        evidence = [own or [pages] for own, pages in zip(sets, gold, strict=True)]
        rule = "norm:title-1"
        for k in (k for k in GOLD_TITLE_AT if k <= self._depth):
            hits = [gold_title_at_k([one], [pages], k) for one, pages in zip(found, gold, strict=True)]
            self._share(f"gold_title_at_{k}", hits, f"{rule}|agg:any-gold-page|n_docs:{k}")
        for k in self._at:
            whole = [evidence_at_k([one], [pages], k) for one, pages in zip(found, evidence, strict=True)]
            self._share(f"evidence_at_{k}", whole, f"{rule}|agg:any-whole-evidence-set|n_docs:{k}")
            shares = [recall_at_k([one], [pages], k) for one, pages in zip(found, gold, strict=True)]
            self._mean(f"recall_at_{k}", shares, f"{rule}|agg:share-of-gold-pages|n_docs:{k}")
        precision = [r_precision([one], [pages]) for one, pages in zip(found, evidence, strict=True)]
        self._mean("r_precision", precision, f"{rule}|agg:max-over-evidence-sets|of:different-pages")
        ranks = [first_rank_with_page(one, pages) for one, pages in zip(found, gold, strict=True)]
        self._mean("title_mrr", [*map(reciprocal_rank, ranks)], f"{rule}|agg:any-gold-page|n_docs:{self._depth}")

    def _share(self, name: str, values: list[float], signature: str) -> None:
        self.scorer.proportion(Values(name, values, self._ids, signature))

    def _mean(self, name: str, values: list[float], signature: str) -> None:
        self.scorer.mean(Values(name, values, self._ids, signature))


def _notes(
    questions: Sequence[Question], found: Mapping[str, Judged], at: Sequence[int], reached: Sequence[int], depth: int
) -> list[str]:
    """What a reader has to know of the counts."""
    total, deepest = len(questions), max(reached, default=0)
    pageless = sum(not _has_pages(one) for one in questions)
    wants_pages = pageless < total or not all(map(_has_answers, questions))  # open questions name none as a rule
    counts = {
        "have no list of passages": total - len(found),
        f"got fewer than {deepest} passages": sum(len(one.pages) < deepest for one in found.values()),
        "name no gold page: metrics of pages leave them out": pageless if wants_pages else 0,
    }
    notes = [f"{count} of {total} questions {what}" for what, count in counts.items() if count]
    beyond = [k for k in sorted({*at, *(GOLD_TITLE_AT if pageless < total else ())}) if k > depth]
    if beyond and depth:
        notes.append(f"at {', '.join(map(str, beyond))}: left out, for no question got more than {depth} passages")
    return notes
