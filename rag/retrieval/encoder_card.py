"""What made vectors: encoder, weights, pooling, layout; and whether questions and passages belong together.

The card of the passages' encoder is stored with vectors and index. Two sides that were trained apart still give
scores, only poor ones (DPR's multiset questions on single-nq passages lose several points at 20 passages), so a pair
is judged by its cards before any search.
"""

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from typing import Any

from rag.errors import IndexMismatchError

_DPR_NAME = re.compile(r"dpr-(?:question|ctx)_encoder-(single-nq|multiset)-base")
_RAG_NAME = re.compile(r"rag-(?:sequence|token)-(?:nq|base)")  # their question encoders began as DPR's single-nq one
_FOR_PEOPLE = ("encoder_id", "training", "precision")  # never part of the fingerprint


@dataclass(frozen=True)
class EncoderCard:
    """One side of a bi-encoder: everything that decides its vectors, before ``score_scale``, and where it is from."""

    encoder_id: str  # hub name or folder name, for people
    training: str  # "dpr-single-nq", "dpr-multiset", or "" where it is not known
    weights_sha256: str
    tokenizer_sha256: str
    pooling: str
    normalize: bool
    max_tokens: int
    layout: str  # of the input: "text", "title. text", or "pair" for DPR's title and text
    prefix: str  # put before the text, as asymmetric encoders want it
    dim: int
    metric: str = "inner_product"
    precision: str = "float32"  # of the arithmetic; within a cosine of 0.999, so not part of the fingerprint

    @property
    def fingerprint(self) -> str:
        """sha256 of all that decides a vector of this side; the same for two names of one encoder."""
        deciding = {name: value for name, value in asdict(self).items() if name not in _FOR_PEOPLE}
        return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()

    @property
    def name(self) -> str:
        """For messages: the encoder's id, its training where it is known, and the start of its weights' hash."""
        known = f"{self.training}, " if self.training else ""
        return f"{self.encoder_id} ({known}weights {self.weights_sha256[:12]})"


def training_of(*names: Any) -> str:
    """The DPR training that the first telling name stands for: hub names, or paths that end in or hold one; else "".

    >>> training_of("facebook/dpr-question_encoder-multiset-base"), training_of("facebook/rag-sequence-nq")
    ('dpr-multiset', 'dpr-single-nq')
    >>> training_of("my-encoder", "/models/models--facebook--dpr-ctx_encoder-single-nq-base/snapshots/1")
    'dpr-single-nq'
    >>> training_of("like-dpr-ctx_encoder-single-nq-base", None)
    ''
    """
    for part in (part for name in names for part in re.split(r"[/\\]|--", name or "")):
        if dpr := _DPR_NAME.fullmatch(part):
            return f"dpr-{dpr[1]}"
        if _RAG_NAME.fullmatch(part):
            return "dpr-single-nq"
    return ""


def pair_problem(questions: EncoderCard, passages: EncoderCard) -> str | None:
    """Why the two do not belong together, in a sentence with both names; None where nothing is known against it.

    Sides of other weights whose training is not known pass: only a check on the index (titles as questions that must
    find their own page) can tell there.
    """
    difference = _cannot_score(questions, passages) or _other_space(questions, passages)
    if difference is None:
        return None
    return f"questions by {questions.name} and passages by {passages.name} do not belong together: {difference}"


def require_pair(questions: EncoderCard, passages: EncoderCard, allow_mismatch: bool = False) -> str | None:
    """Refuse two sides that do not belong together; with the override, return the problem for the record instead.

    Raises IndexMismatchError with the problem. Another dimension or metric is refused with the override too: there
    is no score.
    """
    problem = pair_problem(questions, passages)
    if problem is None:
        return None
    if _cannot_score(questions, passages):
        raise IndexMismatchError(f"{problem}; encode the passages with the encoder of the questions' pair")
    if not allow_mismatch:
        raise IndexMismatchError(
            f"{problem}; name two encoders of one training (encoder.path, encoder.context_path), or set "
            "encoder.allow_mismatch = true and the report says so"
        )
    return problem


def _cannot_score(questions: EncoderCard, passages: EncoderCard) -> str | None:
    if questions.dim != passages.dim:
        return f"{questions.dim} against {passages.dim} dimensions"
    if questions.metric != passages.metric:
        return f"metric {questions.metric} against {passages.metric}"
    return None


def _other_space(questions: EncoderCard, passages: EncoderCard) -> str | None:
    if questions.training and passages.training and questions.training != passages.training:
        return f"training {questions.training} against {passages.training}"
    if questions.pooling != passages.pooling:
        return f"{questions.pooling} against {passages.pooling} pooling"
    if questions.normalize != passages.normalize:
        return "only one of them is normalised"
    if questions.weights_sha256 == passages.weights_sha256 and questions.tokenizer_sha256 != passages.tokenizer_sha256:
        return "the same weights with two tokenizers"
    return None
