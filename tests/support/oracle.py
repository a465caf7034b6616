"""The paper's equations once more, as slow plain loops over Python floats: what the fast code is held against."""

import itertools
import math
from collections.abc import Callable, Sequence

Token = int
NextLogprobs = Callable[[int, tuple[Token, ...]], Sequence[float]]  # (passage, prefix) -> log p of every next token


def log_sum_exp(values: Sequence[float]) -> float:
    largest = max(values)
    if largest == -math.inf:
        return -math.inf
    return largest + math.log(math.fsum(math.exp(value - largest) for value in values))


def prior(scores: Sequence[float], found: Sequence[bool]) -> list[float]:
    """log p(z|x)."""
    kept = [score if there else -math.inf for score, there in zip(scores, found, strict=True)]
    total = log_sum_exp(kept)
    return [score - total for score in kept]


def sequence(tokens: Sequence[Sequence[float]], priors: Sequence[float], mask: Sequence[bool]) -> float:
    """log p(y|x) of RAG-Sequence; ``tokens`` are passages times steps."""
    return log_sum_exp(joint(tokens, priors, mask))


def token(tokens: Sequence[Sequence[float]], priors: Sequence[float], mask: Sequence[bool]) -> float:
    """log p(y|x) of RAG-Token."""
    total = 0.0
    for step, scored in enumerate(mask):
        if scored:
            total += log_sum_exp([p + row[step] for p, row in zip(priors, tokens, strict=True)])
    return total


def joint(tokens: Sequence[Sequence[float]], priors: Sequence[float], mask: Sequence[bool]) -> list[float]:
    """log p(z,y|x) of each passage."""
    return [
        p + math.fsum(value for value, scored in zip(row, mask, strict=True) if scored) if p > -math.inf else -math.inf
        for p, row in zip(priors, tokens, strict=True)
    ]


def posterior(tokens: Sequence[Sequence[float]], priors: Sequence[float], mask: Sequence[bool]) -> list[float]:
    """log p(z|x,y)."""
    parts = joint(tokens, priors, mask)
    total = log_sum_exp(parts)
    return [part - total for part in parts]


def target_logprobs(target: Sequence[Token], passage: int, next_logprobs: NextLogprobs) -> list[float]:
    """log p(y_t|x,z,y_<t) of each token of one target under one passage."""
    return [next_logprobs(passage, tuple(target[:t]))[target[t]] for t in range(len(target))]


def all_hypotheses(vocabulary: int, eos: Token, longest: int) -> list[tuple[Token, ...]]:
    """Everything a search may return: strings that end in eos, and those cut at ``longest`` tokens."""
    others = [token for token in range(vocabulary) if token != eos]
    ended = [(*body, eos) for n in range(longest) for body in itertools.product(others, repeat=n)]
    return ended + list(itertools.product(others, repeat=longest))
