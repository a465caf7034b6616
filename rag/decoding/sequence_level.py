"""RAG-Sequence decoding: search under every passage alone, then weigh each answer under all of them.

Thorough decoding scores every distinct hypothesis under every passage; fast decoding takes probability 0 where
a passage did not propose the hypothesis itself (section 2.4 of the paper).
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
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
    return [_ranked(found) for found in _score(generator, encoded, prior_logprobs, proposals)]


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
    generator: Generator, encoded: EncodedPassages, prior_logprobs: Tensor, proposals: list[list[_Proposal]]
) -> Iterator[list[Hypothesis]]:
    """Each question's distinct hypotheses, marginalised over all of its passages, question by question."""
    n_docs = prior_logprobs.shape[1]
    for number, proposed in enumerate(proposals):
        own = encoded.select(slice(number * n_docs, (number + 1) * n_docs))
        ended = {one.token_ids: one.finished for one in proposed}
        logprobs = _under_all(generator, own, prior_logprobs[number], proposed, list(ended))[:, :, None]
        priors, mask = prior_logprobs[number].expand(len(logprobs), -1), logprobs.new_ones(len(logprobs), 1).bool()
        posteriors = map(tuple, posterior_logprobs(logprobs, priors, mask).exp().tolist())
        marginal = marginalize_sequence(logprobs, priors, mask).tolist()
        yield [
            Hypothesis(ids, logprob, posterior, (), ended[ids])
            for ids, logprob, posterior in zip(ended, marginal, posteriors, strict=True)
        ]


def _under_all(
    generator: Generator,
    encoded: EncodedPassages,
    prior: Tensor,
    proposed: list[_Proposal],
    hypotheses: list[tuple[int, ...]],
) -> Float[Tensor, "hypotheses n_docs"]:
    """log p(y|x,z) of every distinct hypothesis; its search knows it already under a passage that proposed it."""
    unknown = torch.isfinite(prior).tolist()
    logprobs = [[torch.nan if each else 0.0 for each in unknown] for _ in hypotheses]  # masked passages count nothing
    for one in proposed:
        logprobs[hypotheses.index(one.token_ids)][one.passage] = one.logprob
    found = torch.tensor(logprobs, dtype=prior.dtype, device=prior.device)
    for part in _chunks(_to_score(found), max(map(len, hypotheses))):
        ids, mask = pad_rows([hypotheses[place] for place in part.flatten().tolist()], generator.pad_token_id)
        scored = generator.token_logprobs(encoded, ids.to(prior.device), mask.to(prior.device)).sum(dim=1)
        before = found.T.gather(1, part)
        found.T.scatter_(1, part, torch.where(before.isnan(), scored.view(part.shape).to(found.dtype), before))
    return found


def _to_score(logprobs: Float[Tensor, "hypotheses n_docs"]) -> Int[Tensor, "n_docs most"]:
    """The hypotheses that each passage has not scored, as many for all: who lacks fewer scores some once more."""
    lacking = logprobs.isnan().T
    most = int(lacking.sum(dim=1).max())
    return lacking.long().argsort(dim=1, descending=True, stable=True)[:, :most]


def _chunks(places: Int[Tensor, "n_docs open"], longest: int) -> Iterator[Int[Tensor, "n_docs part"]]:
    size = max(1, _POSITIONS_AT_ONCE // (len(places) * longest))
    yield from (part for part in torch.split(places, size, dim=1) if part.numel())


def _ranked(hypotheses: Iterable[Hypothesis]) -> Hypotheses:
    """Best first; equals keep the order in which passages proposed them."""
    return tuple(sorted(hypotheses, key=lambda one: -one.logprob))
