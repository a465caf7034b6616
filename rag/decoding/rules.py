"""What may not be written next: the first tokens every answer has, its minimum length, no n-gram twice.

Rules bar tokens of the mixture, after the passages are summed out, and never rescale the others: log p(y|x) of what
is found stays the model's own.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rag.decoding.hypotheses import BeamOptions, SampleOptions
from rag.modeling.generator import Generator


def bar(
    mixture: Float[Tensor, "batch beam vocab"],
    tokens: Int[Tensor, "batch beam target_len"],
    options: BeamOptions | SampleOptions,
    generator: Generator,
) -> Float[Tensor, "batch beam vocab"]:
    """``mixture``, with minus infinity for each token that may not follow ``tokens``.

    What every target begins with (BART's <s>) is the only choice at its place. Later, tokens that would write an
    n-gram of ``no_repeat_ngram_size`` a second time are barred, and </s> until ``min_new_tokens`` stand before it.
    Where nothing else may follow, </s> may: an answer can always end. With both options 0 and nothing forced, the
    mixture comes back as it is.
    """
    length, forced = tokens.shape[2], generator.first_token_ids
    if length < len(forced):
        return _only(mixture, forced[length])
    if options.no_repeat_ngram_size:
        mixture = mixture.masked_fill(repeating(tokens, options.no_repeat_ngram_size, mixture.shape[2]), -torch.inf)
    if length < options.min_new_tokens:
        mixture = _without_end(mixture, generator.eos_token_id)
    return mixture


def repeating(tokens: Int[Tensor, "batch beam target_len"], size: int, vocab: int) -> Bool[Tensor, "batch beam vocab"]:
    """True for each next token that would complete an n-gram of ``size`` tokens that stands in ``tokens`` already.

    >>> repeating(torch.tensor([[[1, 2, 3, 1]]]), 2, 4)  # 1 was followed by 2
    tensor([[[False, False,  True, False]]])
    """
    barred = torch.zeros(*tokens.shape[:2], vocab + 1, dtype=torch.bool, device=tokens.device)  # the last is a bin
    if tokens.shape[2] >= size:
        ngrams = tokens.unfold(2, size, 1)
        newest = tokens[:, :, tokens.shape[2] - size + 1 :]
        same = (ngrams[..., :-1] == newest[:, :, None]).all(dim=-1)
        barred.scatter_(2, torch.where(same, ngrams[..., -1], vocab), True)
    return barred[..., :vocab]


def _only(mixture: Tensor, token: int) -> Tensor:
    others = torch.arange(mixture.shape[2], device=mixture.device) != token
    return mixture.masked_fill(others, -torch.inf)


def _without_end(mixture: Tensor, end: int) -> Tensor:
    """``end`` barred in every row that has another choice."""
    ended = torch.arange(mixture.shape[2], device=mixture.device) == end
    shorter = mixture.masked_fill(ended, -torch.inf)
    stuck = torch.isneginf(shorter).all(dim=2, keepdim=True)
    return torch.where(stuck, mixture, shorter)
