"""What decoding returns: candidate answers with their probability and the passages behind them."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class BeamOptions:
    """How to search. Greedy is ``num_beams=1``.

    ``max_new_tokens`` counts everything the model writes, BART's leading <s> and the final </s> included. While
    searching, finished hypotheses compete by log-probability / length ** ``length_penalty``. With
    ``early_stopping`` a question is done at its first ``num_beams`` finished hypotheses; without, when no running
    beam beats the worst of them at its present length (the rule of transformers).
    """

    num_beams: int = 1
    max_new_tokens: int = 32
    length_penalty: float = 1.0
    early_stopping: bool = False

    def __post_init__(self) -> None:
        if self.num_beams < 1 or self.max_new_tokens < 1:
            raise ValueError(
                f"num_beams is {self.num_beams} and max_new_tokens {self.max_new_tokens}; both must be at least 1"
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

    @property
    def cited(self) -> int:
        """The passage with the largest posterior, as its place among the n_docs; the first of equals.

        >>> Hypothesis((5, 1), -0.1, (0.2, 0.8)).cited
        1
        """
        return max(range(len(self.posterior)), key=self.posterior.__getitem__)


Hypotheses = tuple[Hypothesis, ...]  # of one question, distinct, best first
