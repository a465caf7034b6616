"""RAG-Token decoding: one search over the mixture of all passages, for many questions at once.

At each step p(y_t|x,y_<t) = sum_z p(z|x) p(y_t|x,z,y_<t), and search goes on as with any language model (section
2.4 of the paper). With one passage this is plain decoding, which RAG-Sequence uses for each passage and the
closed-book model for the question alone.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rag.decoding import rules
from rag.decoding.hypotheses import BeamOptions, Hypotheses, mixture_hypothesis
from rag.modeling.generator import EncodedPassages, Generator

# Finished questions are taken out of the batch when they make up this share of it: copying the keys of those
# that remain costs about as much as one step for all.
_COMPACT_AT = 0.25


@torch.inference_mode()
def beam(
    generator: Generator,
    encoded: EncodedPassages,
    prior_logprobs: Float[Tensor, "batch n_docs"],
    options: BeamOptions = BeamOptions(),  # noqa: B008 - frozen
) -> list[Hypotheses]:
    """Up to ``num_beams`` best answers to each question under RAG-Token, best first.

    ``encoded`` holds batch * n_docs passages, question-major. Ranking is by length-normalised log-probability
    (``BeamOptions``); ``logprob`` itself is never normalised.

    Raises ValueError in training mode, where dropout would make answers random.
    """
    if generator.training:
        raise ValueError("the generator is in training mode, where dropout makes decoding random; call eval() first")
    if not len(prior_logprobs):
        return []
    search = _Search(generator, encoded, prior_logprobs, options)
    while search.running:
        search.step()
    return [question.hypotheses(prior) for question, prior in zip(search.questions, prior_logprobs, strict=True)]


class _Finished(NamedTuple):
    score: float  # length-normalised
    logprob: float
    token_ids: list[int]
    token_logprobs: list[list[float]]  # target_len rows of n_docs
    ended: bool


@dataclass
class _Question:
    """The finished hypotheses of one question."""

    options: BeamOptions
    kept: list[_Finished] = field(default_factory=list)
    done: bool = False

    def add(self, finished: _Finished) -> None:
        self.kept = sorted([*self.kept, finished], key=lambda one: -one.score)[: self.options.num_beams]

    def check(self, best_running: float, length: int) -> None:
        """Done once no running beam can enter the list, by the rule of ``BeamOptions``; and it stays so.

        A question that is done may run on beside its neighbours until it is taken out of the batch.
        """
        if not self.done and len(self.kept) == self.options.num_beams:
            best_possible = best_running / length**self.options.length_penalty
            self.done = self.options.early_stopping or best_possible <= self.kept[-1].score

    def hypotheses(self, prior: Tensor) -> Hypotheses:
        return tuple(
            mixture_hypothesis(one.token_ids, one.logprob, one.token_logprobs, prior, one.ended) for one in self.kept
        )


class _Choice(NamedTuple):
    """The best continuations of each active question, best first."""

    logprobs: Float[Tensor, "active choices"]  # of the whole hypothesis
    parents: Int[Tensor, "active choices"]
    tokens: Int[Tensor, "active choices"]


class _Search:
    """The running beams. Tensors hold active questions only; ``active`` maps them to all of the batch.

    Before the first token every question has one row, afterwards num_beams.
    """

    def __init__(
        self, generator: Generator, encoded: EncodedPassages, prior_logprobs: Tensor, options: BeamOptions
    ) -> None:
        batch, self.n_docs = prior_logprobs.shape
        self.generator = generator
        self.options = options
        self.questions = [_Question(options) for _ in range(batch)]
        self.active = list(range(batch))
        self.length = 0
        self.prior = prior_logprobs
        self.scores = prior_logprobs.new_zeros(batch, 1)
        self.tokens = torch.zeros(batch, 1, 0, dtype=torch.long, device=prior_logprobs.device)
        self.token_logprobs = prior_logprobs.new_zeros(batch, 1, 0, self.n_docs)
        self.next_logprobs, self.state = generator.start(encoded)

    @property
    def running(self) -> bool:
        return not all(self.questions[number].done for number in self.active)

    def step(self) -> None:
        """Choose one more token for every beam, put finished ones aside, and feed the rest to the generator."""
        by_passage = self.next_logprobs.view(len(self.active), self.n_docs, -1, self.next_logprobs.shape[-1])
        mixture = self._mixture(by_passage)
        choice = self._choose(mixture)
        chosen = self._chosen_logprobs(by_passage, choice)
        self.length += 1
        keep = self._finish(choice, chosen)
        self._advance(choice, chosen, keep)
        if self.running:
            self._compact()
            rows = self.tokens[:, None, :, -1].expand(-1, self.n_docs, -1).flatten()
            self.next_logprobs, self.state = self.generator.step(rows, self.state)

    def _mixture(self, by_passage: Tensor) -> Tensor:
        """log sum_z p(z|x) p(y_t|x,z,y_<t), [active beams vocab]."""
        if self.n_docs == 1:
            return by_passage[:, 0]
        return torch.logsumexp(self.prior[:, :, None, None] + by_passage, dim=1)

    def _choose(self, mixture: Tensor) -> _Choice:
        """Twice as many continuations as beams, so that enough remain even if half of them end."""
        active, beams, vocab = mixture.shape
        mixture = rules.bar(mixture, self.tokens, self.options, self.generator)
        totals = (self.scores[:, :, None] + mixture).view(active, beams * vocab)
        logprobs, places = totals.topk(min(2 * self.options.num_beams, beams * vocab), dim=1)
        return _Choice(logprobs, places // vocab, places % vocab)

    def _chosen_logprobs(self, by_passage: Tensor, choice: _Choice) -> Tensor:
        """log p(y_t|x,z,y_<t) of each choice under each passage, [active choices n_docs]."""
        questions = torch.arange(len(self.active), device=by_passage.device)[:, None]
        return by_passage[questions, :, choice.parents, choice.tokens]

    def _finish(self, choice: _Choice, chosen: Tensor) -> Tensor:
        """Put ended hypotheses aside; the places of the choices that run on, [active num_beams]."""
        beams = self.options.num_beams
        last = self.length == self.options.max_new_tokens
        ends = choice.tokens == self.generator.eos_token_id
        usable = ~torch.isneginf(choice.logprobs)
        collect = (ends | last) & usable
        collect[:, beams:] = False  # only the best num_beams continuations may enter the result
        for row, place in collect.nonzero().tolist():
            if not self.questions[self.active[row]].done:
                self.questions[self.active[row]].add(self._finished(choice, chosen, row, place))
        running = choice.logprobs.masked_fill(ends, -torch.inf)
        best, keep = running.topk(min(beams, running.shape[1]), dim=1)
        for number, best_running in zip(self.active, best[:, 0].tolist(), strict=True):
            question = self.questions[number]
            question.check(best_running, self.length)
            question.done = question.done or last or best_running == float("-inf")
        return keep

    def _finished(self, choice: _Choice, chosen: Tensor, row: int, place: int) -> _Finished:
        parent, token = int(choice.parents[row, place]), int(choice.tokens[row, place])
        logprob = float(choice.logprobs[row, place])
        return _Finished(
            logprob / self.length**self.options.length_penalty,
            logprob,
            [*self.tokens[row, parent].tolist(), token],
            [*self.token_logprobs[row, parent].tolist(), chosen[row, place].tolist()],
            token == self.generator.eos_token_id,
        )

    def _advance(self, choice: _Choice, chosen: Tensor, keep: Tensor) -> None:
        """Let the kept choices be the beams, with their history and keys behind them."""
        questions = torch.arange(len(self.active), device=keep.device)[:, None]
        parents = choice.parents.gather(1, keep)
        beams_before = self.tokens.shape[1]
        ends = choice.tokens.gather(1, keep) == self.generator.eos_token_id
        self.scores = choice.logprobs.gather(1, keep).masked_fill(ends, -torch.inf)
        tokens = choice.tokens.gather(1, keep)
        self.tokens = torch.cat([self.tokens[questions, parents], tokens[:, :, None]], dim=2)
        self.token_logprobs = torch.cat(
            [self.token_logprobs[questions, parents], chosen[questions, keep][:, :, None]], dim=2
        )
        if beams_before > 1 or parents.shape[1] > 1:
            passages = torch.arange(len(self.active) * self.n_docs, device=keep.device).view(-1, self.n_docs, 1)
            self.state = self.state.select((passages * beams_before + parents[:, None, :]).flatten())

    def _compact(self) -> None:
        """Take questions that are done out of the batch, once there are enough of them."""
        kept = [row for row, number in enumerate(self.active) if not self.questions[number].done]
        if len(self.active) - len(kept) < _COMPACT_AT * len(self.active):
            return
        rows = torch.tensor(kept, device=self.prior.device)
        beams = self.tokens.shape[1]
        passages = (rows[:, None] * self.n_docs + torch.arange(self.n_docs, device=rows.device)).flatten()
        self.state = self.state.keep(
            passages, (passages[:, None] * beams + torch.arange(beams, device=rows.device)).flatten()
        )
        self.active = [self.active[row] for row in kept]
        self.prior, self.scores, self.tokens, self.token_logprobs = (
            tensor.index_select(0, rows) for tensor in (self.prior, self.scores, self.tokens, self.token_logprobs)
        )
