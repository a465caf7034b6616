"""The one way from a task's options to its kind of decoding."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor

from rag.config import TaskConfig
from rag.decoding import sequence_level, token_level
from rag.decoding.hypotheses import BeamOptions, Hypotheses, SampleOptions
from rag.decoding.labels import LabelScores, classify, classify_by_head, label_token_ids
from rag.decoding.sampling import sample, seed_of
from rag.errors import ConfigError
from rag.modeling.generator import EncodedPassages
from rag.modeling.inputs import GeneratorInputs
from rag.modeling.models import RagModel
from rag.modeling.tokenizer import GeneratorTokenizer
from rag.records import Candidate, LabelProb, Question, TokenEvidence


class Answer(NamedTuple):
    """The best hypothesis for one question, or its most probable label, with log p(y|x) and p(z|x,y).

    ``hypotheses`` are all distinct ones that were found, best first: at most as many as were asked for, often fewer.
    """

    text: str
    logprob: float
    posterior: tuple[float, ...]
    hypotheses: Hypotheses = ()
    tokens: tuple[TokenEvidence, ...] = ()  # of RAG-Token
    candidates: tuple[Candidate, ...] = ()  # the hypotheses as texts
    label_probs: tuple[LabelProb, ...] = ()


def decode(
    model: RagModel,
    task: TaskConfig,
    inputs: GeneratorInputs,
    prior: Float[Tensor, "batch n_docs"],
    questions: Sequence[Question],
) -> list[Answer]:
    """argmax_y p(y|x) for each question: by label where the task has labels, else by search or by sampling.

    ``prior`` is log p(z|x). The ids of the ``questions`` give each random numbers of its own, and their texts are what
    a head reads. Passages are encoded once, whatever is asked of them afterwards.
    """
    generator, tokenizer = model.generator, model.generator.tokenizer
    encoded = generator.encode(inputs.input_ids.flatten(0, 1), inputs.attention_mask.flatten(0, 1))
    if task.labels and task.classification == "head":
        claims = [question.text for question in questions]
        return _labels(task, classify_by_head(model, encoded, prior, claims, list(task.labels)))
    if task.labels:
        return _labels(task, classify(generator, encoded, prior, label_token_ids(tokenizer, task.labels)))
    names = [question.question_id for question in questions]
    return [_answer(tokenizer, found) for found in _hypotheses(model, task, encoded, prior, names)]


def _labels(task: TaskConfig, scores: LabelScores) -> list[Answer]:
    """The most probable label of each question, the first of equals."""
    answers = []
    for probs, posteriors in zip(scores.probs, scores.posterior_probs, strict=True):
        best = int(probs.argmax())
        of_labels = tuple(map(LabelProb, task.labels, probs.tolist()))
        posterior = tuple(posteriors[best].tolist())
        answers.append(Answer(of_labels[best].label, probs[best].log().item(), posterior, label_probs=of_labels))
    return answers


def _answer(tokenizer: GeneratorTokenizer, found: Hypotheses) -> Answer:
    """The best hypothesis as text, with what each of its tokens leans on."""
    best = found[0]
    candidates = tuple(Candidate(tokenizer.decode(one.token_ids), one.logprob) for one in found)
    pieces = tokenizer.pieces(best.token_ids) if best.token_posterior else []
    tokens = tuple(map(TokenEvidence, pieces, best.token_posterior))
    return Answer(candidates[0].text, best.logprob, best.posterior, found, tokens, candidates)


def _hypotheses(
    model: RagModel, task: TaskConfig, encoded: EncodedPassages, prior: Tensor, names: Sequence[str]
) -> list[Hypotheses]:
    """By the family's own search, or drawn from the mixture; closed book is RAG-Token with one passage."""
    shared = _of(task, "max_new_tokens", "min_new_tokens", "no_repeat_ngram_size")
    if task.decoding == "sample":
        if model.family == "rag-sequence":
            raise ConfigError(
                "decoding = 'sample' needs a mixture for every token, which rag-sequence has not; use beam"
            )
        draws = SampleOptions(**shared, **_of(task, "samples", "temperature", "top_k", "top_p"))
        seeds = [seed_of(name, task.sampling_seed) for name in names]
        return sample(model.generator, encoded, prior, seeds, draws)
    options = BeamOptions(**shared, **_of(task, "num_beams", "length_penalty", "early_stopping"))
    if model.family != "rag-sequence":
        return token_level.beam(model.generator, encoded, prior, options)
    search = sequence_level.thorough if task.sequence_decoding == "thorough" else sequence_level.fast
    return search(model.generator, encoded, prior, options)


def _of(task: TaskConfig, *keys: str) -> dict[str, Any]:
    return task.model_dump(include=set(keys))
