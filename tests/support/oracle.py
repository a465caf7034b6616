"""The paper's equations once more, as slow plain loops over Python floats: what the fast code is held against."""

import itertools
import math
from collections.abc import Callable, Sequence

Matrix = Sequence[Sequence[float]]


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


def joint(tokens: Matrix, priors: Sequence[float], mask: Sequence[bool]) -> list[float]:
    """log p(z,y|x) of each passage; ``tokens`` are passages times steps."""
    parts = []
    for passage_prior, row in zip(priors, tokens, strict=True):
        total = passage_prior
        for value, scored in zip(row, mask, strict=True):
            if scored:
                total += value
        parts.append(total)
    return parts


def sequence(tokens: Matrix, priors: Sequence[float], mask: Sequence[bool]) -> float:
    """log p(y|x) of RAG-Sequence."""
    return log_sum_exp(joint(tokens, priors, mask))


def token(tokens: Matrix, priors: Sequence[float], mask: Sequence[bool]) -> float:
    """log p(y|x) of RAG-Token."""
    total = 0.0
    for step, scored in enumerate(mask):
        if scored:
            total += log_sum_exp([p + row[step] for p, row in zip(priors, tokens, strict=True)])
    return total


def posterior(tokens: Matrix, priors: Sequence[float], mask: Sequence[bool]) -> list[float]:
    """log p(z|x,y)."""
    parts = joint(tokens, priors, mask)
    total = log_sum_exp(parts)
    return [part - total for part in parts]


def gradient(function: Callable[[list[float]], float], at: Sequence[float], width: float = 1e-5) -> list[float]:
    """Central differences of a function of several numbers; right to about width squared."""
    slopes = []
    for place in range(len(at)):
        up, down = list(at), list(at)
        up[place] += width
        down[place] -= width
        slopes.append((function(up) - function(down)) / (2 * width))
    return slopes


def all_hypotheses(vocabulary: int, eos: int, longest: int) -> list[tuple[int, ...]]:
    """Everything a search may return: strings that end in eos, and those cut at ``longest`` tokens."""
    others = [number for number in range(vocabulary) if number != eos]
    ended = [(*body, eos) for n in range(longest) for body in itertools.product(others, repeat=n)]
    return ended + list(itertools.product(others, repeat=longest))
