"""The paper's equations: one passage for the whole answer (RAG-Sequence) or one for each token (RAG-Token).

All values are natural logarithms (nats). Half precision is lifted to float32 first; float64 stays float64.
Source: Lewis et al. 2020 (arXiv 2005.11401), sections 2.1 to 2.4.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from rag.errors import DataError


def prior_logprobs(
    doc_scores: Float[Tensor, "batch n_docs"],
    doc_mask: Bool[Tensor, "batch n_docs"] | None = None,
) -> Float[Tensor, "batch n_docs"]:
    """How much the retriever trusts each passage before any answer: log p(z|x), a log_softmax over n_docs.

    ``doc_mask`` is False where fewer than n_docs passages were found; those get prior 0 (minus infinity here),
    whatever their score says, and receive no gradient.

    Raises DataError if a question has no passage at all, because then p(z|x) does not exist.

    >>> prior_logprobs(torch.tensor([[2.0, 2.0, 9.0]]), torch.tensor([[True, True, False]])).exp()
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    scores = _at_least_float32(doc_scores)
    found = torch.ones_like(scores, dtype=torch.bool) if doc_mask is None else doc_mask
    empty = (~found.any(dim=1)).nonzero().flatten().tolist()
    if empty:
        raise DataError(f"rows {empty} of the batch have no passage to marginalise over; drop or count these questions")
    return torch.log_softmax(scores.masked_fill(~found, -torch.inf), dim=1)


def marginalize_sequence(
    token_logprobs: Float[Tensor, "batch n_docs target_len"],
    prior_logprobs: Float[Tensor, "batch n_docs"],
    target_mask: Bool[Tensor, "batch target_len"],
) -> Float[Tensor, "batch"]:
    """RAG-Sequence: log p(y|x) when one passage explains all of the target.

    logsumexp_z [ log p(z|x) + sum_t log p(y_t|x,z,y_<t) ]; steps whose mask is False add nothing, so an empty
    target has log-likelihood 0. Source: section 2.1 of the paper.

    An answer whose halves stand in two passages ("The Sun Also Rises" in one, "A Farewell to Arms" in the
    other) suffers here, because no single passage supports it all; RAG-Token changes passage between tokens:

    >>> halves = torch.tensor([[[0.9, 0.1], [0.1, 0.9]]]).log()
    >>> prior, mask = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[True, True]])
    >>> round(marginalize_sequence(halves, prior, mask).exp().item(), 2)
    0.09
    >>> round(marginalize_token(halves, prior, mask).exp().item(), 2)
    0.25
    """
    return torch.logsumexp(_joint_logprobs(token_logprobs, prior_logprobs, target_mask), dim=1)


def marginalize_token(
    token_logprobs: Float[Tensor, "batch n_docs target_len"],
    prior_logprobs: Float[Tensor, "batch n_docs"],
    target_mask: Bool[Tensor, "batch target_len"],
) -> Float[Tensor, "batch"]:
    """RAG-Token: log p(y|x) when every token may lean on another passage.

    sum_t logsumexp_z [ log p(z|x) + log p(y_t|x,z,y_<t) ]; steps whose mask is False add nothing. With one
    scored token it equals RAG-Sequence. Source: section 2.1 of the paper.

    >>> one = torch.tensor([[[0.9], [0.1]]]).log()
    >>> round(marginalize_token(one, torch.tensor([[0.25, 0.75]]).log(), torch.tensor([[True]])).exp().item(), 2)
    0.3
    """
    tokens, prior = _masked(token_logprobs, prior_logprobs, target_mask)
    mixture = torch.logsumexp(prior[:, :, None] + tokens, dim=1)
    return torch.where(target_mask, mixture, 0.0).sum(dim=1)


def posterior_logprobs(
    token_logprobs: Float[Tensor, "batch n_docs target_len"],
    prior_logprobs: Float[Tensor, "batch n_docs"],
    target_mask: Bool[Tensor, "batch target_len"],
) -> Float[Tensor, "batch n_docs"]:
    """Which passage explains the whole target: log p(z|x,y), Bayes' rule under RAG-Sequence.

    log p(z|x) + sum_t log p(y_t|x,z,y_<t) - log p(y|x); its exponentials sum to 1 over n_docs. The gradient of
    the RAG-Sequence loss with respect to doc_scores is prior minus posterior.

    >>> tokens = torch.tensor([[[0.9, 0.9], [0.3, 0.3]]]).log()
    >>> prior, mask = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[True, True]])
    >>> posterior_logprobs(tokens, prior, mask).exp()
    tensor([[0.9000, 0.1000]])
    """
    return torch.log_softmax(_joint_logprobs(token_logprobs, prior_logprobs, target_mask), dim=1)


def token_posterior_logprobs(
    token_logprobs: Float[Tensor, "batch n_docs target_len"],
    prior_logprobs: Float[Tensor, "batch n_docs"],
    target_mask: Bool[Tensor, "batch target_len"],
) -> Float[Tensor, "batch n_docs target_len"]:
    """Which passage explains each token under RAG-Token: log p(z|x,y_<=t), one distribution a token.

    log p(z|x) + log p(y_t|x,z,y_<t) - logsumexp over z of the same; steps whose mask is False keep the prior.
    Source: figure 2 of the paper shows it for a Jeopardy question.

    >>> halves = torch.tensor([[[0.9, 0.1], [0.1, 0.9]]]).log()
    >>> prior, mask = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[True, True]])
    >>> token_posterior_logprobs(halves, prior, mask).exp()
    tensor([[[0.9000, 0.1000],
             [0.1000, 0.9000]]])
    """
    tokens, prior = _masked(token_logprobs, prior_logprobs, target_mask)
    return torch.log_softmax(prior[:, :, None] + tokens, dim=1)


def _joint_logprobs(token_logprobs: Tensor, prior_logprobs: Tensor, target_mask: Tensor) -> Tensor:
    """log p(z,y|x) for each passage."""
    tokens, prior = _masked(token_logprobs, prior_logprobs, target_mask)
    return prior + tokens.sum(dim=2)


def _masked(token_logprobs: Tensor, prior_logprobs: Tensor, target_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Both inputs in full precision; padding and masked passages count 0 whatever they hold, NaN included."""
    prior = _at_least_float32(prior_logprobs)
    counts = target_mask[:, None, :] & ~torch.isneginf(prior)[:, :, None]
    return torch.where(counts, _at_least_float32(token_logprobs), 0.0), prior


def _at_least_float32(values: Tensor) -> Tensor:
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values
