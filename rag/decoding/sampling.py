"""RAG-Token sampling: answers drawn token by token from the mixture of all passages.

Each question has random numbers of its own, all drawn before its first token, so neither the batch nor a neighbour
can change what it is given.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rag.decoding import rules
from rag.decoding.hypotheses import Hypotheses, SampleOptions, mixture_hypothesis
from rag.modeling.generator import EncodedPassages, Generator

# Rows of one passage share their keys, so a step looks at the tokens of all of them: more at once would cost more.
_SAMPLES_AT_ONCE = 64
_COLDEST = 1e-30  # below it a temperature could become 0 in float32; any two scores are told apart long before


def seed_of(name: str, seed: int = 0) -> int:
    """The seed of one question, told from all others by its ``name``.

    >>> seed_of("nq-1") == seed_of("nq-1"), seed_of("nq-1") == seed_of("nq-2"), seed_of("nq-1") == seed_of("nq-1", 1)
    (True, False, False)
    """
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:8], "big") >> 1


@torch.inference_mode()
def sample(
    generator: Generator,
    encoded: EncodedPassages,
    prior_logprobs: Float[Tensor, "batch n_docs"],
    seeds: Sequence[int],
    options: SampleOptions = SampleOptions(),  # noqa: B008 - frozen
) -> list[Hypotheses]:
    """The distinct answers among ``samples`` draws for each question, the most probable first.

    ``encoded`` holds batch * n_docs passages, question-major, and ``seeds`` one number a question. ``logprob`` is the
    model's own log p(y|x), whatever temperature and cuts the answer was drawn with; ``draws`` counts its draws.

    Raises ValueError in training mode, where dropout would change the mixture.
    """
    if generator.training:
        raise ValueError("the generator is in training mode, where dropout makes decoding random; call eval() first")
    if not seeds:
        return []
    encoded = generator.with_cross_keys(encoded)
    numbers = torch.stack([_numbers(seed, options) for seed in seeds]).to(prior_logprobs.device)
    drawn: list[list[_Drawn]] = [[] for _ in seeds]
    for some in torch.split(numbers, _SAMPLES_AT_ONCE, dim=1):
        for question, answers in zip(drawn, _draw(generator, encoded, prior_logprobs, some, options), strict=True):
            question.extend(answers)
    return [_distinct(answers, prior) for answers, prior in zip(drawn, prior_logprobs, strict=True)]


class _Drawn(NamedTuple):
    token_ids: tuple[int, ...]
    logprob: float
    token_logprobs: list[list[float]]  # target_len rows of n_docs
    ended: bool


def _draw(
    generator: Generator,
    encoded: EncodedPassages,
    prior_logprobs: Tensor,
    numbers: Float[Tensor, "batch samples max_new_tokens"],
    options: SampleOptions,
) -> list[list[_Drawn]]:
    """One answer for each row of random numbers, by question."""
    (batch, n_docs), samples = prior_logprobs.shape, numbers.shape[1]
    logprobs, state = generator.start(encoded)
    rows = torch.arange(batch * n_docs, device=logprobs.device).repeat_interleave(samples)
    logprobs, state = logprobs[rows], state.select(rows)
    answers = _Answers.empty(batch, samples, n_docs, logprobs)
    for step in range(options.max_new_tokens):
        if step:
            logprobs, state = generator.step(answers.tokens[:, None, :, -1].expand(-1, n_docs, -1).flatten(), state)
        by_passage = logprobs.view(batch, n_docs, samples, -1)
        mixture = torch.logsumexp(prior_logprobs[:, :, None, None] + by_passage, dim=1)
        allowed = rules.bar(mixture, answers.tokens, options, generator)
        answers.add(pick(narrow(allowed, options), numbers[:, :, step]), mixture, by_passage, generator.eos_token_id)
        if answers.ended.all():
            break
    return answers.lists(generator.eos_token_id)


@dataclass
class _Answers:
    """The answers being drawn; what has ended goes on with tokens that nobody reads."""

    tokens: Int[Tensor, "batch samples target_len"]
    by_passage: Float[Tensor, "batch samples target_len n_docs"]
    logprobs: Float[Tensor, "batch samples"]
    ended: Tensor

    @classmethod
    def empty(cls, batch: int, samples: int, n_docs: int, like: Tensor) -> "_Answers":
        """No token yet, on the device of ``like``."""
        return cls(
            torch.zeros(batch, samples, 0, dtype=torch.long, device=like.device),
            like.new_zeros(batch, samples, 0, n_docs),
            like.new_zeros(batch, samples),
            torch.zeros(batch, samples, dtype=torch.bool, device=like.device),
        )

    def add(self, chosen: Int[Tensor, "batch samples"], mixture: Tensor, by_passage: Tensor, end: int) -> None:
        """One more token for every answer."""
        tokens, n_docs = chosen[:, :, None], by_passage.shape[1]
        said = by_passage.gather(3, tokens[:, None].expand(-1, n_docs, -1, -1)).permute(0, 2, 3, 1)
        self.logprobs += mixture.gather(2, tokens)[..., 0].masked_fill(self.ended, 0.0)
        self.by_passage = torch.cat([self.by_passage, said], dim=2)
        self.tokens = torch.cat([self.tokens, tokens], dim=2)
        self.ended |= chosen == end

    def lists(self, end: int) -> list[list[_Drawn]]:
        """By question, each answer up to its end."""
        rows = zip(
            self.tokens.tolist(), self.logprobs.tolist(), self.by_passage.tolist(), self.ended.tolist(), strict=True
        )
        return [[_until_end(end, *answer) for answer in zip(*question, strict=True)] for question in rows]


def _until_end(end: int, tokens: list[int], logprob: float, by_passage: list[list[float]], ended: bool) -> _Drawn:
    length = tokens.index(end) + 1 if ended else len(tokens)
    return _Drawn(tuple(tokens[:length]), logprob, by_passage[:length], ended)


def _distinct(answers: list[_Drawn], prior: Float[Tensor, "n_docs"]) -> Hypotheses:
    """Each answer once, with the number of its draws, best first."""
    first: dict[tuple[int, ...], _Drawn] = {}
    draws: dict[tuple[int, ...], int] = {}
    for one in answers:
        first.setdefault(one.token_ids, one)
        draws[one.token_ids] = draws.get(one.token_ids, 0) + 1
    found = [
        mixture_hypothesis(ids, one.logprob, one.token_logprobs, prior, one.ended)._replace(draws=draws[ids])
        for ids, one in first.items()
    ]
    return tuple(sorted(found, key=lambda one: (-one.logprob, one.token_ids)))


def _numbers(seed: int, options: SampleOptions) -> Float[Tensor, "samples max_new_tokens"]:
    random = torch.Generator().manual_seed(seed)
    return torch.rand(options.samples, options.max_new_tokens, generator=random, dtype=torch.float64)


def narrow(
    logprobs: Float[Tensor, "batch samples vocab"], options: SampleOptions
) -> Float[Tensor, "batch samples vocab"]:
    """Scores after temperature, then ``top_k``, then ``top_p``: minus infinity for tokens that may not be drawn.

    Tokens exactly as likely as the last of ``top_k`` stay too. They are not normalised; ``pick`` needs no more.
    """
    # Beside the most probable token, so that near a temperature of 0 that one is drawn and nothing overflows.
    scores = (logprobs - logprobs.amax(dim=-1, keepdim=True)) / max(options.temperature, _COLDEST)
    if 0 < options.top_k < scores.shape[-1]:
        least = scores.topk(options.top_k, dim=-1).values[..., -1:]
        scores = scores.masked_fill(scores < least, -torch.inf)
    if options.top_p < 1:
        ordered, places = scores.sort(dim=-1, descending=True)
        probs = ordered.softmax(dim=-1)
        before = probs.cumsum(dim=-1) - probs
        dropped = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, places, before >= options.top_p)
        scores = scores.masked_fill(dropped, -torch.inf)
    return scores


def pick(
    scores: Float[Tensor, "batch samples vocab"], numbers: Float[Tensor, "batch samples"]
) -> Int[Tensor, "batch samples"]:
    """The token at which the summed probabilities pass each number of [0, 1); proportional to exp(scores).

    >>> scores = torch.tensor([[[0.2, 0.0, 0.8]] * 3]).log()
    >>> pick(scores, torch.tensor([[0.0, 0.19, 0.21]], dtype=torch.float64))
    tensor([[0, 0, 2]])
    """
    summed = scores.double().softmax(dim=-1).cumsum(dim=-1)
    places = torch.searchsorted(summed, (numbers * summed[..., -1])[..., None], right=True)[..., 0]
    return places.clamp(max=scores.shape[-1] - 1)
