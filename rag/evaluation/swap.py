"""The index swap: one question about each office that changed hands, scored against the holders of both dates.

Source: Lewis et al. 2020, section 4.5, "index hot-swapping".
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

from rag.config import SwapConfig
from rag.errors import DataError
from rag.evaluation.answers import exact_match
from rag.records import Prediction, Question

_COLUMNS = ("position", "country", "holder", "aliases", "since", "until")


class SwapQuestion(NamedTuple):
    """A fact with another value at each date."""

    question: Question
    position: str
    country: str
    before: tuple[str, ...]  # right answers as of the earlier date, with their variants
    after: tuple[str, ...]


class SwapAnswer(NamedTuple):
    """One prediction against the answers of one date."""

    corpus: str
    answers_of: str  # the corpus whose date the answers are of
    question_id: str
    position: str
    country: str
    prediction: str | None  # None where the question failed
    answers: tuple[str, ...]
    correct: bool | None
    answer_in_index: bool
    spellable: bool  # whether the generator's vocabulary can write the usual name, the first of the answers


class _Tenure(NamedTuple):
    country: str
    names: tuple[str, ...]
    since: date | None
    until: date | None


def swap_questions(facts: Path, config: SwapConfig) -> list[SwapQuestion]:
    """The offices of ``facts`` whose holder differs between the two dates, as questions in order of position.

    ``facts`` is a CSV of tenures with the columns position, country, holder, aliases (separated by |), since and
    until (ISO dates; empty: unknown start, still in office). Works for any fact with a holder and dates.
    Raises DataError for missing columns, a date that is none, or a table in which nothing changed.
    """
    tenures = _read_tenures(facts)
    questions = []
    for position in sorted(tenures):
        before, after = (_holder(tenures[position], on) for on in (config.before_date, config.after_date))
        if before and after and before.names[0] != after.names[0]:
            text = config.template.format(position=position)
            question = Question(f"swap:{position}", "open-qa", text, (*before.names, *after.names))
            questions.append(SwapQuestion(question, position, before.country, before.names, after.names))
    if not questions:
        raise DataError(f"{facts}: nothing changed between {config.before_date} and {config.after_date}")
    return questions


def score_swap(
    questions: Sequence[SwapQuestion],
    predictions: Sequence[Prediction],
    corpora: tuple[str, str],
    asked: str,
    holds: Mapping[tuple[str, ...], bool],
    spells: Callable[[str], bool],
) -> list[SwapAnswer]:
    """The predictions made with the index ``asked`` against the answers of both dates.

    ``corpora`` are the earlier and the later one; ``holds`` says of each office's answers whether a
    passage of the asked index has one of them, ``spells`` whether the generator can write a text.
    """
    by_id = {prediction.question_id: prediction for prediction in predictions}
    return [
        _scored(one, by_id.get(one.question.question_id), asked, corpus, answers, holds, spells)
        for one in questions
        for corpus, answers in zip(corpora, (one.before, one.after), strict=True)
    ]


def _scored(
    one: SwapQuestion,
    prediction: Prediction | None,
    asked: str,
    corpus: str,
    answers: tuple[str, ...],
    holds: Mapping[tuple[str, ...], bool],
    spells: Callable[[str], bool],
) -> SwapAnswer:
    text = None if prediction is None or prediction.error else prediction.text
    return SwapAnswer(
        corpus=asked,
        answers_of=corpus,
        question_id=one.question.question_id,
        position=one.position,
        country=one.country,
        prediction=text,
        answers=answers,
        correct=None if text is None else exact_match(text, answers),
        answer_in_index=holds[answers],
        spellable=spells(answers[0]),
    )


def _read_tenures(path: Path) -> dict[str, list[_Tenure]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        missing = set(_COLUMNS) - set(reader.fieldnames or ())
        if missing:
            raise DataError(f"{path} lacks the columns {sorted(missing)}; it needs {', '.join(_COLUMNS)}")
        tenures: dict[str, list[_Tenure]] = {}
        for number, row in enumerate(reader, start=2):
            if any(row[column] is None for column in _COLUMNS) or not row["holder"]:
                raise DataError(f"{path} line {number} lacks a holder or a column; it needs {', '.join(_COLUMNS)}")
            names = [row["holder"], *row["aliases"].split("|")]
            since, until = (_date(path, number, row[column]) for column in ("since", "until"))
            tenure = _Tenure(row["country"], tuple(dict.fromkeys(filter(None, names))), since, until)
            tenures.setdefault(row["position"], []).append(tenure)
    return tenures


def _date(path: Path, number: int, text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise DataError(f"{path} line {number}: {text!r} is not a date such as 2016-12-20") from error


def _holder(tenures: Sequence[_Tenure], on: date) -> _Tenure | None:
    holding = [one for one in tenures if (not one.since or one.since <= on) and (not one.until or on < one.until)]
    return holding[-1] if holding else None
