"""Passages of a few words as a source that tests encode: lists in memory, opened in any process."""

import hashlib
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rag.config import EncoderConfig
from rag.retrieval.encode_shard import PassageKeys, SourcePassages
from rag.retrieval.encoders import Encoder
from tests.support.tiny_encoders import WORDS


@dataclass(frozen=True)
class ListedSource:
    """A source of given columns; calling it opens it."""

    ids: tuple[str, ...]
    text_sha1: tuple[str, ...]
    titles: tuple[str, ...]
    texts: tuple[str, ...]

    def __call__(self) -> "ListedSource":
        return self

    def __len__(self) -> int:
        return len(self.ids)

    def keys(self, rows: range) -> PassageKeys:
        return PassageKeys(*(column[rows.start : rows.stop] for column in (self.ids, self.text_sha1)))

    def rows(self, rows: range) -> SourcePassages:
        columns = (self.ids, self.text_sha1, self.titles, self.texts)
        return SourcePassages(*(column[rows.start : rows.stop] for column in columns))


@dataclass(frozen=True)
class EncoderAt:
    """A tiny encoder by its folder; calling it loads it."""

    folder: Path
    config: EncoderConfig

    def __call__(self) -> Encoder:
        return Encoder.load(self.folder, self.config)


def listed_source(rows: Iterable[int], name: str = "s") -> ListedSource:
    """A passage for each number, told apart by its words; ids by place."""
    numbers = list(rows)
    texts = [" ".join(WORDS[(n * step + step) % len(WORDS)] for step in range(1, 3 + n % 5)) for n in numbers]
    titles = [" ".join(WORDS[n // len(WORDS) ** place % len(WORDS)] for place in range(3)) for n in numbers]
    sha1 = [hashlib.sha1(f"{title}\n{text}".encode()).hexdigest() for title, text in zip(titles, texts, strict=True)]
    ids = [f"{name}:{place}:0" for place in range(len(numbers))]
    return ListedSource(tuple(ids), tuple(sha1), tuple(titles), tuple(texts))


@dataclass(frozen=True)
class EncoderThatDies(EncoderAt):
    """An encoder that ends the first process that loads it, other than that of the test, as ``kill -9`` would."""

    marker: Path
    survivor: int  # process id

    def __call__(self) -> Encoder:
        if os.getpid() != self.survivor and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__()
