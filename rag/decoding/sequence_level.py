"""RAG-Sequence decoding: search under every passage alone, then weigh each answer under all of them.

Thorough decoding scores every distinct hypothesis under every passage; fast decoding takes probability 0 where
a passage did not propose the hypothesis itself (section 2.4 of the paper).
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rag.decoding import token_level
from rag.decoding.hypotheses import BeamOptions, Hypotheses, Hypothesis
from rag.modeling.generator import EncodedPassages, Generator
from rag.modeling.marginalize import marginalize_sequence, posterior_logprobs
from rag.modeling.tokenizer import pad_rows

# Target positions scored in one call; each costs a row of the vocabulary (128 kB of float32 for T5).
_POSITIONS_AT_ONCE = 2048


@torch.inference_mode()
def thorough(
    generator: Generator,
    encoded: EncodedPassages,
    prior_logprobs: Float[Tensor, "batch n_docs"],
    options: BeamOptions = BeamOptions(),  # noqa: B008 - frozen
) -> list[Hypotheses]:
    """Every distinct hypothesis of each question with its exact log p(y|x), best first.

    logsumexp_z [ log p(z|x) + log p(y|x,z) ] over all passages, for the union of what the passages' own beams
    proposed. Masked passages propose nothing. Ranking is by log p(y|x), without a length penalty.
    """
    if not len(prior_logprobs):
        return []
    encoded = generator.with_cross_keys(encoded)
    proposals = _propose(generator, encoded, prior_logprobs, options)
    token_ids = [list(dict.fromkeys(one.token_ids for one in question)) for question in proposals]
    results = []
    for number, scored in enumerate(_score(generator, encoded, prior_logprobs, token_ids)):
        ended = {one.token_ids: one.finished for one in proposals[number]}
        results.append(
            _ranked(
                Hypothesis(ids, logprob, posterior, (), ended[ids])
                for ids, logprob, posterior in zip(token_ids[number], scored.logprobs, scored.posteriors, strict=True)
            )
        )
    return results


@torch.inference_mode()
def fast(
    generator: Generator,
    encoded: EncodedPassages,
    prior_logprobs: Float[Tensor, "batch n_docs"],
    options: BeamOptions = BeamOptions(),  # noqa: B008 - frozen
) -> list[Hypotheses]:
    """Every distinct hypothesis of each question, summed only over the passages whose own beam proposed it.

    Its ``logprob`` is a lower bound of the thorough one, found without a second pass through the generator.
    """
    results = []
    proposals = _propose(generator, encoded, prior_logprobs, options)
    for proposed, prior in zip(proposals, prior_logprobs, strict=True):
        joint: dict[tuple[int, ...], Tensor] = {}
        for one in proposed:
            row = joint.setdefault(one.token_ids, torch.full_like(prior, -torch.inf))
            row[one.passage] = prior[one.passage] + one.logprob
        ended = {one.token_ids: one.finished for one in proposed}
        results.append(
            _ranked(
                Hypothesis(ids, row.logsumexp(0).item(), tuple(row.softmax(0).tolist()), (), ended[ids])
                for ids, row in joint.items()
            )
        )
    return results


class _Proposal(NamedTuple):
    passage: int  # its place among the n_docs
    token_ids: tuple[int, ...]
    logprob: float  # log p(y|x,z) under that passage
    finished: bool


class _Scored(NamedTuple):
    logprobs: list[float]
    posteriors: list[tuple[float, ...]]


def _propose(
    generator: Generator, encoded: EncodedPassages, prior_logprobs: Tensor, options: BeamOptions
) -> list[list[_Proposal]]:
    """What each passage's own beam finds, by question and passage; a passage alone is a mixture of one."""
    batch, n_docs = prior_logprobs.shape
    found = torch.isfinite(prior_logprobs).flatten().nonzero().flatten()
    alone = encoded if len(found) == batch * n_docs else encoded.select(found)
    beams = token_level.beam(generator, alone, prior_logprobs.new_zeros(len(found), 1), options)
    proposals: list[list[_Proposal]] = [[] for _ in range(batch)]
    for row, hypotheses in zip(found.tolist(), beams, strict=True):
        proposals[row // n_docs].extend(
            _Proposal(row % n_docs, one.token_ids, one.logprob, one.finished) for one in hypotheses
        )
    return proposals


def _score(
    generator: Generator, encoded: EncodedPassages, prior_logprobs: Tensor, token_ids: list[list[tuple[int, ...]]]
) -> Iterator[_Scored]:
    """Each question's hypotheses under each of its passages, question by question."""
    n_docs = prior_logprobs.shape[1]
    for number, hypotheses in enumerate(token_ids):
        own = encoded.select(slice(number * n_docs, (number + 1) * n_docs))
        prior = prior_logprobs[number : number + 1]
        scored = _Scored([], [])
        for ids, mask in _chunks(hypotheses, n_docs, generator.pad_token_id):
            ids, mask = ids.to(prior.device), mask.to(prior.device)
            tokens = _token_logprobs(generator, own, ids, mask, n_docs)
            priors = prior.expand(len(ids), -1)
            scored.logprobs.extend(marginalize_sequence(tokens, priors, mask).tolist())
            scored.posteriors.extend(map(tuple, posterior_logprobs(tokens, priors, mask).exp().tolist()))
        yield scored


def _chunks(hypotheses: list[tuple[int, ...]], n_docs: int, pad_token_id: int) -> Iterator[tuple[Tensor, Tensor]]:
    longest = max(map(len, hypotheses))
    size = max(1, _POSITIONS_AT_ONCE // (n_docs * longest))
    for first in range(0, len(hypotheses), size):
        yield pad_rows(hypotheses[first : first + size], pad_token_id)


def _token_logprobs(
    generator: Generator,
    encoded: EncodedPassages,
    ids: Int[Tensor, "hypotheses target_len"],
    mask: Bool[Tensor, "hypotheses target_len"],
    n_docs: int,
) -> Float[Tensor, "hypotheses n_docs target_len"]:
    """log p(y_t|x,z,y_<t) of every hypothesis under every passage."""
    by_passage = generator.token_logprobs(encoded, ids.repeat(n_docs, 1), mask.repeat(n_docs, 1))
    return by_passage.view(n_docs, *ids.shape).transpose(0, 1)


def _ranked(hypotheses: Iterator[Hypothesis]) -> Hypotheses:
    """Best first; equals keep the order in which passages proposed them."""
    return tuple(sorted(hypotheses, key=lambda one: -one.logprob))
