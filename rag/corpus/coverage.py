"""Gold-answer coverage: for which questions does a corpus hold an answer at all.

No reader can be right on a question whose answer stands in no passage, so this bounds every score on the corpus.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, groupby, islice
from pathlib import Path
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from ahocorasick_rs import BytesAhoCorasick

from rag.errors import DataError
from rag.text import compile_pattern, decompose, word_tokens

_FIRST_PASSAGES = 64
_MOST_PASSAGES = 4096  # looked through at once
_COUNTED_PASSAGES = 2000  # whose words say which word of an answer is rare
_REPLAN_SHARE = 0.8  # of the answers that the plan was made for
_NOT_ASCII = re.compile(rb"[\x80-\xff]+")
_ASCII_WORDS = bytes(
    byte if byte > 127 else ord(chr(byte).lower()) if chr(byte).isalnum() else 32 for byte in range(256)
)


class Question(Protocol):
    """What is needed of a question; ``rag.records.Question`` has it."""

    @property
    def question_id(self) -> str: ...
    @property
    def answers(self) -> Sequence[str]: ...


class Coverage(NamedTuple):
    """How many questions have an answer in some passage, and which have not."""

    n_questions: int
    n_covered: int
    uncovered: tuple[str, ...]  # question ids, in the order of the questions


def answer_coverage(
    shards: Sequence[Path],
    questions: Sequence[Question],
    progress: Callable[[Iterable[Path]], Iterable[Path]] = iter,
    patterns: bool = False,
) -> Coverage:
    """Of how many questions the text of some passage holds an answer: consecutive words of it, as DPR matches them.

    The rule is that of ``rag.evaluation.retrieval.answer_in_passage``; with ``patterns`` the answers are regular
    expressions, found anywhere, each looked for in every passage until it is found. One pass over the shards, which
    ends when every question is covered; a few passages and the answers still missing are in memory.
    Raises DataError if a shard cannot be read or has no column "text", and for a pattern that is none.
    """
    search = _PatternSearch(questions) if patterns else _Search(questions)
    for shard in progress(shards):
        if not search.missing:
            break
        for texts in _batches(shard):
            search.look_into(texts)
    uncovered = tuple(question.question_id for row, question in enumerate(questions) if not search.covered[row])
    return Coverage(len(questions), len(questions) - len(uncovered), uncovered)


class _PatternSearch:
    """The patterns not yet found."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self.covered = [False] * len(questions)
        self._patterns = [list(map(compile_pattern, question.answers)) for question in questions]
        self.missing = [row for row, patterns in enumerate(self._patterns) if patterns]

    def look_into(self, texts: Sequence[str]) -> None:
        """Mark the questions of which one of the texts holds an answer."""
        for text in map(decompose, texts):
            for row in self.missing:
                self.covered[row] = any(pattern.search(text) for pattern in self._patterns[row])
            self.missing = [row for row in self.missing if not self.covered[row]]


class _Search:
    """The answers not yet found, and the automaton that finds where one of them may stand.

    The automaton looks for a run of words of each answer in lower-case text; what it finds is then compared by words.
    """

    def __init__(self, questions: Sequence[Question]) -> None:
        self.covered = [False] * len(questions)
        self.missing: dict[str, list[int]] = {}  # an answer's words -> the questions it answers
        self._answers = [{answer for answer in map(_padded, question.answers) if answer} for question in questions]
        for row, answers in enumerate(self._answers):
            for answer in sorted(answers):
                self.missing.setdefault(answer, []).append(row)
        self._signs = {answer: _signs(answer) for answer in self.missing}
        self._letters = {answer: _words_only(answer).replace(b" ", b"") for answer in self.missing}
        self._counts: Counter[str] = Counter()
        self._counted = 0
        self._chunk = _FIRST_PASSAGES
        self._plan()

    def look_into(self, texts: Sequence[str]) -> None:
        """Mark the questions of which one of the texts holds an answer."""
        rest = iter(texts)
        while self.missing and (chunk := list(islice(rest, self._chunk))):
            self._look(chunk)
            self._count(chunk)
            if len(self.missing) <= _REPLAN_SHARE * self._planned:
                self._plan()
            self._chunk = min(2 * self._chunk, _MOST_PASSAGES)

    def _plan(self) -> None:
        runs: dict[bytes, list[str]] = defaultdict(list)
        for answer in self.missing:
            runs[self._rarest_run(answer)].append(answer)
        # Nothing but punctuation, such as "%": looked for in every passage.
        self._wordless = [(answer, answer.split()[0]) for answer in runs.pop(b"", [])]
        self._planned = len(self.missing)
        self._runs = list(runs.values())
        self._automaton = BytesAhoCorasick([b" %b " % run for run in runs])

    def _rarest_run(self, answer: str) -> bytes:
        """The rarest of the runs of words that no punctuation parts: one space is between them wherever they stand."""
        grouped = groupby(answer.split(), key=lambda word: _words_only(word).strip() != b"")
        runs = [list(words) for is_words, words in grouped if is_words]
        rarest = min(runs, key=self._frequency, default=[])
        return b" ".join(_words_only(" ".join(rarest)).split())

    def _frequency(self, run: list[str]) -> tuple[int, int]:
        return min(self._counts[word] for word in run), -sum(map(len, run))

    def _look(self, texts: list[str]) -> None:
        words = list(map(_words_only, texts))
        starts = list(accumulate((len(text) + 3 for text in words), initial=2))
        joined = b" \n ".join((b"", *words, b""))
        candidates: defaultdict[int, set[str]] = defaultdict(set)
        for run, start, _ in self._automaton.find_matches_as_indexes(joined, overlapping=True):
            candidates[bisect_right(starts, start) - 1].update(self._runs[run])
        for row, text in enumerate(texts if self._wordless else ()):
            lowered = decompose(text).lower()
            candidates[row].update([answer for answer, sign in self._wordless if sign in lowered])
        for row, answers in candidates.items():
            self._compare(texts[row], words[row].replace(b" ", b""), answers)

    def _compare(self, text: str, squeezed: bytes, candidates: Iterable[str]) -> None:
        """Look for these answers in a text; most are told apart by letters and signs alone, which costs less."""
        answers = [answer for answer in candidates if answer in self.missing and self._letters[answer] in squeezed]
        lowered = decompose(text).lower() if answers else ""
        answers = [answer for answer in answers if all(sign in lowered for sign in self._signs[answer])]
        words = _padded(text) if answers else ""
        for answer in answers:
            if answer in words:
                for row in self.missing.get(answer, ()):
                    self._cover(row)

    def _cover(self, row: int) -> None:
        """A covered question's other answers need not be found, unless another question waits for them."""
        self.covered[row] = True
        for answer in self._answers[row]:
            waiting = [other for other in self.missing.get(answer, ()) if not self.covered[other]]
            if waiting:
                self.missing[answer] = waiting
            else:
                self.missing.pop(answer, None)

    def _count(self, texts: list[str]) -> None:
        wanted = texts[: max(0, _COUNTED_PASSAGES - self._counted)]
        self._counted += len(wanted)
        for text in wanted:
            self._counts.update(set(word_tokens(text)))


def _padded(text: str) -> str:
    """The words with a space around each, so that a run of words is a part of the text; "" where there is none."""
    words = word_tokens(text)
    return f" {' '.join(words)} " if words else ""


def _signs(answer: str) -> list[str]:
    """The words of an answer without letters and digits."""
    return [word for word in answer.split() if not any(map(str.isalnum, word))]


def _words_only(text: str) -> bytes:
    """Lower-case letters and digits of the text without accents, with spaces for everything else.

    Words that only space parts have one space between them.
    """
    ascii_only = text.isascii()
    words = decompose(text).encode("utf-8", errors="replace").translate(_ASCII_WORDS)
    if not ascii_only:
        words = _NOT_ASCII.sub(_folded, words)
    # isprintable is False for all white space and invisible characters but the space.
    return words if text.isprintable() and "  " not in text else b" ".join(words.split())


def _folded(match: re.Match[bytes]) -> bytes:
    return _folded_bytes(match.group())


@lru_cache(maxsize=1 << 16)
def _folded_bytes(characters: bytes) -> bytes:
    """``casefold`` maps each character by itself, where ``lower`` looks at those around a Greek sigma."""
    kept = (
        character.casefold() if character.isalnum() else "" if unicodedata.category(character)[0] == "M" else " "
        for character in characters.decode()
    )
    return "".join(kept).encode()


def _batches(shard: Path) -> Iterator[list[str]]:
    try:
        with pq.ParquetFile(shard) as file:
            if "text" not in file.schema_arrow.names:
                raise DataError(f"{shard} has no column 'text'; give the passages of an ingested source")
            for batch in file.iter_batches(_MOST_PASSAGES, columns=["text"], use_threads=False):
                yield batch.column(0).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{shard} cannot be read as passages: {error}; ingest the source again") from error
