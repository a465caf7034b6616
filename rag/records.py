"""The domain in a handful of immutable records: what the stages hand to each other.

Tables of the same records (Arrow, Parquet) carry the same column names.
"""

from typing import Literal, NamedTuple

TaskName = Literal["open-qa", "fever", "msmarco", "jeopardy"]
Split = Literal["train", "dev", "test"]


class Page(NamedTuple):
    """One page of a MediaWiki dump, in one revision."""

    page_id: int
    title: str
    namespace: int
    redirect: str | None  # the target's title where the page is a redirect
    revision_id: int
    timestamp: str  # ISO 8601, as the dump has it
    wikitext: str


class Passage(NamedTuple):
    """A retrieved text unit: up to 100 words of one page, with its title."""

    passage_id: str  # "{source}:{page_id}:{ordinal}"
    title: str
    text: str
    page_id: int
    revision_id: int


class Question(NamedTuple):
    """The input x of any task, a claim or a clue's answer as much as a question, with its gold answers."""

    question_id: str
    task: TaskName
    text: str
    answers: tuple[str, ...]  # any of them is right; for fever the one label
    titles: tuple[str, ...] = ()  # gold pages, where the task names them
    evidence: tuple[tuple[str, ...], ...] = ()  # the same as sets, any of which suffices


class RetrievedPassage(NamedTuple):
    """One of the n_docs passages behind a prediction, and what the model thought of it."""

    question_id: str
    rank: int  # from 0, by doc_score
    passage_id: str
    title: str
    text: str
    doc_score: float
    prior: float  # p(z|x)
    posterior: float  # p(z|x,y) of the prediction


class TokenEvidence(NamedTuple):
    """A piece of an answer of RAG-Token, one token of it, and the passages that it leans on."""

    text: str  # the texts of all pieces, one after the other, are the answer; "" for the token that ends it
    posterior: tuple[float, ...]  # p(z|x,y_<=t) by rank; sums to 1


class Candidate(NamedTuple):
    """One of the distinct answers that decoding found."""

    text: str
    logprob: float  # log p(y|x) in nats


class LabelProb(NamedTuple):
    """The probability of one label of a classification; those of all labels sum to 1."""

    label: str
    prob: float


class Prediction(NamedTuple):
    """What a model answered to one question, with the evidence it used.

    A question that failed has an empty ``text`` and the reason in ``error``; it is counted, never scored.
    """

    question_id: str
    text: str
    logprob: float  # log p(y|x) in nats
    cited_passage_id: str | None  # the passage with the largest posterior
    retrieved: tuple[RetrievedPassage, ...]
    seconds: float
    error: str | None = None
    tokens: tuple[TokenEvidence, ...] = ()  # of RAG-Token, which has a posterior for every token
    candidates: tuple[Candidate, ...] = ()  # all distinct answers found, the prediction first; none for a label
    label_probs: tuple[LabelProb, ...] = ()  # of a classification, in the order of the task's labels
    truncated: int = 0  # of its passages were cut to fit into max_source_tokens


class Reject(NamedTuple):
    """An input row that could not be used: kept with its place and the reason, and counted."""

    source: str  # file or stage
    row: int  # line or record number, from 1
    reason: str
    text: str  # the row, or its first 500 characters


class Metric(NamedTuple):
    """One measured number with everything needed to trust it."""

    name: str
    value: float
    low: float  # 95 % interval
    high: float
    n: int  # questions scored
    n_expected: int  # questions that should have been scored
    n_errors: int
    unit: str  # "fraction"
    signature: str  # normaliser, version and options that define the number


class StageEstimate(NamedTuple):
    """One stage before it starts."""

    stage: str
    rows: int
    memory_bytes: int
    disk_bytes: int
    seconds: float | None  # None: depends on what nobody here knows, such as a network
