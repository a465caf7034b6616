"""Fine-tuning on input-output pairs: the marginal likelihood, with gradient into generator and question encoder.

The context encoder and the index stay as they are (Lewis et al. 2020, section 2.4); where BM25 retrieves, there is
no question encoder and the generator alone is trained. Every random choice hangs on the seed and the number of the
step, so a training that was killed goes on to the same weights.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rag.config import ModelConfig
from rag.errors import TrainingError
from rag.modeling.inputs import GeneratorInputs, assemble, assemble_closed_book
from rag.modeling.models import RagModel, score_passages
from rag.parallel import on_threads
from rag.retrieval.encoders import Encoder
from rag.retrieval.retriever import Retrieved, Retriever, TrainableRetriever
from rag.training.examples import Example, example_stream
from rag.training.resume import load_state, save_state

# A step computes so many questions with their passages at once, in so many parts side by side, whatever the batch and
# the cores: each part holds its activations and gradients of its own, which add up to the batch's in the parts' order.
_QUESTIONS_AT_ONCE = 4
_PARTS_AT_ONCE = 4
_Gradients = tuple[Tensor | None, ...]
Progress = Callable[[Iterable[int]], Iterable[int]]


class TrainingStep(NamedTuple):
    """What one step did; the losses are in nats."""

    step: int
    loss_per_example: float
    loss_per_token: float
    gradient_norm: float
    distinct_top1: float | None  # different best passages / different questions; low: a collapsed retriever
    truncated: int  # passages that were cut to fit


class BatchLoss(NamedTuple):
    """The loss of some examples, and what monitors count."""

    per_example: Float[Tensor, "batch"]  # nats
    scored_tokens: int
    top1: list[str]  # the best passage of each question
    truncated: int


@dataclass(frozen=True)
class Trainer:
    """A model with all that a training step needs; ``retriever`` is None for closed-book."""

    model: RagModel
    config: ModelConfig
    layout: str
    max_source_tokens: int
    seed: int
    retriever: Retriever | None = None

    @property
    def encoder(self) -> Encoder | None:
        """The question encoder that is trained with the generator; None for closed-book and BM25."""
        return self.retriever.encoder if isinstance(self.retriever, TrainableRetriever) else None

    def train(
        self, examples: Mapping[str, Sequence[Example]], folder: Path, progress: Progress = iter
    ) -> list[TrainingStep]:
        """Train for ``config.steps``, going on from what ``folder`` holds of an earlier, stopped call.

        None at all leaves the model as it is. Raises TrainingError where the loss is not finite, or where no step had
        a gradient, so that nothing was trained.
        """
        if self.config.steps == 0:
            return []
        optimizer = self.optimizer()
        log = [TrainingStep(**row) for row in load_state(folder, self.model, optimizer)]
        stream = islice(example_stream(examples, self.config.tasks, self.seed), len(log) * self.config.batch_size, None)
        self.model.train(self.config.dropout)
        for step in progress(range(len(log), self.config.steps)):
            log.append(self.step(step, list(islice(stream, self.config.batch_size)), optimizer))
            if (step + 1) % self.config.checkpoint_every == 0 and step + 1 < self.config.steps:
                save_state(folder, self.model, optimizer, [row._asdict() for row in log])
        self.model.eval()
        if not any(step.gradient_norm for step in log):
            raise TrainingError(f"no gradient in any of {len(log)} steps: nothing was trained; check the targets")
        return log

    def batch_loss(self, batch: Sequence[Example]) -> BatchLoss:
        """The loss of some examples, with the retrieval it needs; differentiable.

        All are texts to write, or all are claims with a class (ValueError otherwise).
        """
        targets = self.model.generator.targets([example.target for example in batch])
        inputs, doc_scores, doc_mask, top1 = self._inputs(batch)
        labels = [example.label for example in batch if example.label is not None]
        if labels:
            loss, scored = self.model.label_loss(inputs, doc_scores, targets, labels, doc_mask), len(labels)
        else:
            loss = self.model.loss(inputs, doc_scores, targets.ids, targets.mask, doc_mask)
            scored = int(targets.mask.sum())
        return BatchLoss(loss.per_example, scored, top1, sum(inputs.truncated))

    def _inputs(self, batch: Sequence[Example]) -> tuple[GeneratorInputs, Tensor, Tensor | None, list[str]]:
        tokenizer = self.model.generator.tokenizer
        questions = [example.generator_question for example in batch]
        if self.retriever is None:
            scores = torch.zeros(len(batch), 1, device=self.model.generator.device)
            return assemble_closed_book(questions, tokenizer, self.max_source_tokens), scores, None, []
        found, scores = self._retrieve(self.retriever, [example.question for example in batch])
        inputs = assemble(questions, found.pairs(), self.layout, tokenizer, self.max_source_tokens)
        top1 = [best[0].passage_id for best in found.passages if best]
        return inputs, scores, torch.from_numpy(found.mask).to(scores.device), top1

    def _retrieve(self, retriever: Retriever, questions: Sequence[str]) -> tuple[Retrieved, Tensor]:
        """The passages, and their doc_scores with gradient to the question encoder where there is one."""
        if not isinstance(retriever, TrainableRetriever):
            found = retriever.retrieve(questions, self.config.n_docs)
            return found, torch.from_numpy(found.doc_scores).to(self.model.generator.device)
        vectors = retriever.encoder.embed_questions(retriever.encoder.tokenize_questions(questions))
        found = retriever.retrieve(questions, self.config.n_docs, vectors.detach().cpu().numpy())
        passages = torch.from_numpy(retriever.vectors(found.rows)).to(vectors.device)
        scores = score_passages(vectors, passages)
        if found.sparse_scores is not None:
            scores = scores + torch.from_numpy(found.sparse_scores).to(scores.device)
        return found, scores

    def step(self, step: int, batch: Sequence[Example], optimizer: torch.optim.Optimizer) -> TrainingStep:
        """Loss, gradients and one move of the weights; raises TrainingError where they are not finite."""
        torch.manual_seed(self.seed * 1_000_003 + step)
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * self._schedule(step)
        optimizer.zero_grad(set_to_none=True)
        trained = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        losses = []
        for loss, gradients in self._parts(batch, trained):
            losses.append(loss)
            _accumulate(trained, gradients)
            del gradients  # or they would be held while the next part is waited for
        norm = nn.utils.clip_grad_norm_(trained, self.config.max_grad_norm).item()
        total = sum(loss.per_example.sum().item() for loss in losses)
        if not (math.isfinite(norm) and math.isfinite(total)):
            raise TrainingError(
                f"step {step}: loss {total / len(batch)}, gradient norm {norm}; "
                + ("lower the learning rate" if step else "no weight has moved yet: look at those it starts from")
            )
        optimizer.step()
        top1 = [passage for loss in losses for passage in loss.top1]
        return TrainingStep(
            step=step,
            loss_per_example=total / len(batch),
            loss_per_token=total / sum(loss.scored_tokens for loss in losses),
            gradient_norm=norm,
            distinct_top1=len(set(top1)) / len({example.question for example in batch}) if top1 else None,
            truncated=sum(loss.truncated for loss in losses),
        )

    def _parts(self, batch: Sequence[Example], trained: list[nn.Parameter]) -> Iterator[tuple[BatchLoss, _Gradients]]:
        """Loss and gradients of a few questions at a time, in their order, whichever thread is done first."""

        def compute(part: Sequence[Example]) -> tuple[BatchLoss, _Gradients]:
            loss = self.batch_loss(part)
            mean = loss.per_example.sum() / len(batch)
            gradients = torch.autograd.grad(mean, trained, allow_unused=True)
            return loss._replace(per_example=loss.per_example.detach()), gradients

        parts = _cut(batch)
        if self.config.dropout:  # drawn at random, so in one order
            return map(compute, parts)
        return on_threads(compute, parts, self.model.generator.device, _PARTS_AT_ONCE)

    def _schedule(self, step: int) -> float:
        """Linear warm-up, then linear decay to 0 after the last step."""
        if step < self.config.warmup_steps:
            return (step + 1) / (self.config.warmup_steps + 1)
        return (self.config.steps - step) / (self.config.steps - self.config.warmup_steps)

    def optimizer(self) -> torch.optim.Optimizer:
        """AdamW over what is trained; layers that stay frozen are frozen here."""
        _freeze_lower_layers(self.model.generator.model, self.config.frozen_encoder_layers)
        groups = [{"params": _trainable(self.model.generator), "peak": self.config.learning_rate}]
        if self.model.head is not None:
            groups.append({"params": _trainable(self.model.head), "peak": self.config.learning_rate})
        if self.encoder is not None and self.config.question_encoder_learning_rate > 0:
            rate = self.config.question_encoder_learning_rate
            groups.append({"params": _trainable(self.encoder.module), "peak": rate})
        return torch.optim.AdamW(groups, weight_decay=0.0, fused=True)  # one pass over the weights instead of ten


def _cut(batch: Sequence[Example]) -> list[Sequence[Example]]:
    """Parts of one kind each: texts to write, then claims to classify, which have another loss."""
    size = min(_QUESTIONS_AT_ONCE, math.ceil(len(batch) / 2))  # two parts at least: each computes on one core
    texts = [example for example in batch if example.label is None]
    claims = [example for example in batch if example.label is not None]
    return [kind[start : start + size] for kind in (texts, claims) for start in range(0, len(kind), size)]


def _accumulate(parameters: list[nn.Parameter], gradients: _Gradients) -> None:
    for parameter, gradient in zip(parameters, gradients, strict=True):
        if gradient is not None:
            parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)


def _trainable(module: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


def _freeze_lower_layers(model: nn.Module, layers: int) -> None:
    """The lower encoder layers and the embeddings below them keep their pretrained weights."""
    if not layers:
        return
    encoder = model.get_encoder()  # type: ignore[operator]  # a transformers model
    blocks: nn.ModuleList = encoder.block if hasattr(encoder, "block") else encoder.layers
    frozen: list[nn.Module] = [model.get_input_embeddings(), *blocks[:layers]]  # type: ignore[operator]
    for module in frozen:
        module.requires_grad_(False)
