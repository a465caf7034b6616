"""What decoding is asked and what it returns: candidate answers with their probability and the passages behind them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from rag.modeling.marginalize import posterior_logprobs, token_posterior_logprobs


@dataclass(frozen=True)
class BeamOptions:
    """How to search. Greedy is ``num_beams=1``.

    ``max_new_tokens`` counts everything the model writes, BART's leading <s> and the final </s> included;
    ``min_new_tokens`` counts what stands before </s>. No n-gram of ``no_repeat_ngram_size`` tokens is written twice;
    0 allows it. While searching, finished hypotheses compete by log-probability / length ** ``length_penalty``. With
    ``early_stopping`` a question is done at its first ``num_beams`` finished hypotheses; without, when no running
    beam beats the worst of them at its present length (the rule of transformers).
    """

    num_beams: int = 1
    max_new_tokens: int = 32
    length_penalty: float = 1.0
    early_stopping: bool = False
    min_new_tokens: int = 0
    no_repeat_ngram_size: int = 0

    def __post_init__(self) -> None:
        if self.num_beams < 1 or self.max_new_tokens < 1:
            raise ValueError(
                f"num_beams is {self.num_beams} and max_new_tokens {self.max_new_tokens}; both must be at least 1"
            )
        _check_rules(self)


@dataclass(frozen=True)
class SampleOptions:
    """How to draw answers: ``samples`` of them a question, each token from the mixture of all passages.

    The mixture is sharpened to p ** (1 / ``temperature``), then cut to its ``top_k`` most likely tokens (0: all),
    then to the fewest tokens that hold ``top_p`` of what is left. The two rules are those of ``BeamOptions``.
    """

    samples: int = 1
    max_new_tokens: int = 32
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_new_tokens: int = 0
    no_repeat_ngram_size: int = 0

    def __post_init__(self) -> None:
        if self.samples < 1 or self.max_new_tokens < 1:
            raise ValueError(
                f"samples is {self.samples} and max_new_tokens {self.max_new_tokens}; both must be at least 1"
            )
        if not (self.temperature > 0 and self.top_k >= 0 and 0 < self.top_p <= 1):
            raise ValueError(
                f"temperature is {self.temperature}, top_k {self.top_k} and top_p {self.top_p}; "
                "temperature must be above 0, top_k at least 0, top_p above 0 and at most 1"
            )
        _check_rules(self)


def _check_rules(options: BeamOptions | SampleOptions) -> None:
    if options.no_repeat_ngram_size < 0 or not 0 <= options.min_new_tokens < options.max_new_tokens:
        raise ValueError(
            f"min_new_tokens is {options.min_new_tokens}, max_new_tokens {options.max_new_tokens} and "
            f"no_repeat_ngram_size {options.no_repeat_ngram_size}; none may be negative, and the minimum must leave "
            "room for the token that ends an answer"
        )


class Hypothesis(NamedTuple):
    """One candidate answer y to a question x.

    ``posterior`` is p(z|x,y) of each passage, as if one passage explained all of y (RAG-Sequence's Bayes rule, used
    for both families, so that evidence adds up over tokens); ``token_posterior`` is RAG-Token's own, one row of
    n_docs for each token, and empty for the others.
    """

    token_ids: tuple[int, ...]  # all scored tokens: </s> where it was reached, BART's <s> too
    logprob: float  # log p(y|x) in nats
    posterior: tuple[float, ...]
    token_posterior: tuple[tuple[float, ...], ...] = ()
    finished: bool = True  # False where max_new_tokens came before </s>
    draws: int = 1  # how many of the samples were this one

    @property
    def cited(self) -> int:
        """The passage with the largest posterior, as its place among the n_docs; the first of equals.

        >>> Hypothesis((5, 1), -0.1, (0.2, 0.8)).cited
        1
        """
        return max(range(len(self.posterior)), key=self.posterior.__getitem__)


Hypotheses = tuple[Hypothesis, ...]  # of one question, distinct, best first; its length says how many were found


def mixture_hypothesis(
    token_ids: Sequence[int],
    logprob: float,
    token_logprobs: Sequence[Sequence[float]],
    prior_logprobs: Float[Tensor, "n_docs"],
    finished: bool,
) -> Hypothesis:
    """What RAG-Token found, with its evidence.

    ``token_logprobs`` are log p(y_t|x,z,y_<t): target_len rows of n_docs.
    """
    prior = prior_logprobs[None]
    if prior.shape[1] == 1:
        return Hypothesis(tuple(token_ids), logprob, (1.0,), (), finished)
    tokens = torch.tensor(token_logprobs, device=prior.device).T[None]
    mask = torch.ones(1, tokens.shape[2], dtype=torch.bool, device=prior.device)
    posterior = posterior_logprobs(tokens, prior, mask)[0].exp().tolist()
    by_token = token_posterior_logprobs(tokens, prior, mask)[0].exp().T.tolist()
    return Hypothesis(tuple(token_ids), logprob, tuple(posterior), tuple(map(tuple, by_token)), finished)
