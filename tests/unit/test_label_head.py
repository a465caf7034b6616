"""A head over the decoder's last state: against plain loops, in both families, trained, saved and refused."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from rag.config import ModelConfig, TaskConfig
from rag.decoding.labels import classify_by_head
from rag.errors import CheckpointError, ConfigError
from rag.modeling.inputs import GeneratorInputs
from rag.modeling.label_head import LabelHead, require_head
from rag.modeling.marginalize import prior_logprobs
from rag.modeling.models import Family, RagModel
from rag.pipeline import answer_questions
from rag.records import Question
from rag.training.checkpoint import HEAD, ModelCard, load_checkpoint, save_checkpoint
from rag.training.examples import Example, task_examples
from rag.training.loop import Trainer
from tests.support import oracle
from tests.support.tiny_encoders import encoder_config
from tests.support.tiny_models import random_ids, tiny_generator
from tests.support.tiny_rag import tiny_rag

LABELS = {"SUPPORTS": "a", "REFUTES": "b", "NOT ENOUGH INFO": "c"}
TASK = TaskConfig(reader="fever", test="t", labels=LABELS, classification="head")
CLAIMS = ["the capital of paris", "who is lyon"]
SCORES = [[1.0, -0.5, 2.0], [0.3, 0.0, 9.0]]
FOUND = [[True, True, True], [True, True, False]]


@pytest.fixture(scope="module", params=["flan-t5", "bart"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RagModel:
    generator = tiny_generator(request.param, tmp_path_factory.mktemp(request.param), seed=2)
    return RagModel("rag-sequence", generator, head=_random_head(generator.config.d_model)).double()


def _random_head(dim: int) -> LabelHead:
    head, chance = LabelHead(list(LABELS), dim), torch.Generator().manual_seed(4)
    for parameter in head.parameters():
        parameter.data = torch.randn(parameter.shape, generator=chance)
    return head.eval()


def _inputs(n_docs: int = 3) -> GeneratorInputs:
    ids, mask = random_ids(2 * n_docs, seed=1)
    return GeneratorInputs(ids.view(2, n_docs, -1), mask.view(2, n_docs, -1), (0,) * (2 * n_docs))


def _naive(model: RagModel, inputs: GeneratorInputs) -> Iterator[list[list[float]]]:
    """log p(label|x,z) question by question and passage by passage, through transformers, without any padding."""
    network: Any = model.generator.model
    weight, bias = (part.tolist() for part in model.head.linear.parameters())  # type: ignore[union-attr]
    for number, claim in enumerate(CLAIMS):
        target = model.generator.tokenizer.targets([claim]).ids
        read = torch.cat([torch.tensor([[model.generator.start_token_id]]), target[:, :-1]], dim=1)
        rows = []
        for ids, mask in zip(inputs.input_ids[number], inputs.attention_mask[number], strict=True):
            output = network(input_ids=ids[mask][None], decoder_input_ids=read, output_hidden_states=True)
            state = output.decoder_hidden_states[-1][0, -1].tolist()
            logits = [math.fsum(map(lambda a, b: a * b, row, state)) + b for row, b in zip(weight, bias, strict=True)]
            rows.append([logit - oracle.log_sum_exp(logits) for logit in logits])
        yield rows


@pytest.mark.parametrize("family", ["rag-sequence", "rag-token"])
def test_loss_probabilities_and_posterior_equal_plain_loops(model: RagModel, family: Family) -> None:
    model.family = family
    inputs, gold, names = _inputs(), [2, 0], [list(LABELS)[label] for label in (2, 0)]
    scores, found = torch.tensor(SCORES, dtype=torch.float64, requires_grad=True), torch.tensor(FOUND)
    loss = model.label_loss(inputs, scores, model.generator.targets(CLAIMS), names, found)
    with torch.no_grad():
        encoded = model.generator.encode(inputs.input_ids.flatten(0, 1), inputs.attention_mask.flatten(0, 1))
        given = classify_by_head(model, encoded, prior_logprobs(scores, found), CLAIMS, list(LABELS))
    for number, rows in enumerate(_naive(model, inputs)):
        prior = oracle.prior(SCORES[number], FOUND[number])
        joint = [[p + row[label] for p, row in zip(prior, rows, strict=True)] for label in range(3)]
        logprobs = [oracle.log_sum_exp(one) for one in joint]
        assert loss.per_example[number].item() == pytest.approx(-logprobs[gold[number]], abs=1e-6)
        assert given.probs[number].tolist() == pytest.approx([math.exp(one) for one in logprobs], abs=1e-6)
        assert given.probs[number].sum().item() == pytest.approx(1)
        for label in range(3):
            expected = [math.exp(one - logprobs[label]) for one in joint[label]]
            assert given.posterior_probs[number, label].tolist() == pytest.approx(expected, abs=1e-6)
    loss.per_example.sum().backward()
    slope = loss.prior_logprobs.exp() - loss.posterior_logprobs.exp()
    torch.testing.assert_close(scores.grad, slope, rtol=0, atol=1e-9)


def test_a_new_head_finds_all_labels_equally_likely_and_learns_from_the_first_step(model: RagModel) -> None:
    fresh = RagModel(
        "rag-token", model.generator, head=LabelHead(list(LABELS), model.generator.config.d_model).double()
    )
    scores = torch.tensor(SCORES, dtype=torch.float64)
    loss = fresh.label_loss(_inputs(), scores, fresh.generator.targets(CLAIMS), list(LABELS)[:2]).per_example
    assert loss.tolist() == pytest.approx([math.log(3)] * 2)
    loss.sum().backward()
    assert fresh.head is not None
    assert fresh.head.linear.weight.grad is not None
    assert fresh.head.linear.weight.grad.abs().max() > 0


QUESTIONS = [
    Question("0", "fever", "the capital of peru is lima", ("SUPPORTS",)),
    Question("1", "fever", "the capital of france is a", ("REFUTES",)),
    Question("2", "fever", "who is the king", ("NOT ENOUGH INFO",)),
]


def _texts() -> list[Example]:
    qa = TaskConfig(reader="open-qa", test="t")
    return task_examples("qa", qa, [Question("q", "open-qa", "the capital of peru", ("a",))])


def _trained(
    folder: Path, family: str, order: Iterable[str] = LABELS, **options: object
) -> tuple[Trainer, list[float]]:
    given: dict[str, object] = {
        "family": family, "corpus": None if family == "closed-book" else "c", "tasks": {"fever": 1}, "n_docs": 2,
        "steps": 30, "batch_size": 3, "learning_rate": 2e-2, "dropout": False, "checkpoint_every": 10,
    }  # fmt: skip
    rag = tiny_rag(folder, family)  # type: ignore[arg-type]
    rag.model.head = LabelHead(list(order), rag.model.generator.config.d_model)
    settings = ModelConfig.model_validate({**given, **options})
    trainer = Trainer(rag.model, settings, rag.layout, rag.max_source_tokens, 7, rag.retriever)
    examples = {"fever": task_examples("fever", TASK, QUESTIONS)}
    if "qa" in settings.tasks:
        examples["qa"] = _texts()
    return trainer, [step.loss_per_example for step in trainer.train(examples, folder)]


@pytest.mark.parametrize("family", ["rag-token", "rag-sequence", "closed-book"])
def test_it_learns_its_claims_and_survives_the_disk(tmp_path: Path, family: str) -> None:
    trainer, losses = _trained(tmp_path, family)
    assert losses[0] == pytest.approx(math.log(3), abs=1e-4)
    assert losses[-1] < 0.3
    rag = replace(tiny_rag(tmp_path, family), model=trainer.model, retriever=trainer.retriever)  # type: ignore[arg-type]
    made = list(answer_questions(rag, TASK, QUESTIONS))
    assert [one.text for one in made] == [question.answers[0] for question in QUESTIONS]
    assert all(sum(prob for _, prob in one.label_probs) == pytest.approx(1, abs=1e-5) for one in made)
    encoder = trainer.encoder
    card = ModelCard(
        family=family, retriever="dense" if encoder else None, n_docs=2, layout=rag.layout, max_source_tokens=40,
        encoder=encoder_config(score_scale=5.0) if encoder else None, passage_fingerprint=None, trained_steps=30,
    )  # type: ignore[arg-type]  # fmt: skip
    save_checkpoint(tmp_path / "model", trainer.model, encoder, card)
    loaded = load_checkpoint(tmp_path / "model", card.family, card.retriever).model
    again = answer_questions(replace(rag, model=loaded), TASK, QUESTIONS)
    assert [one.label_probs for one in again] == [one.label_probs for one in made]
    (tmp_path / "model" / HEAD).write_bytes(b"not a head")
    with pytest.raises(CheckpointError, match=r"head\.safetensors is no head of the labels SUPPORTS"):
        load_checkpoint(tmp_path / "model", card.family, card.retriever)


def test_claims_and_texts_are_trained_in_one_mixture(tmp_path: Path) -> None:
    _, losses = _trained(tmp_path, "rag-token", tasks={"fever": 2, "qa": 1})
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("claims", [1, 2, 3])
def test_a_mixed_batch_is_the_sum_of_its_claims_and_its_texts(tmp_path: Path, size: int, claims: int) -> None:
    trainer, _ = _trained(tmp_path, "rag-token", tasks={"fever": 2, "qa": 1}, max_grad_norm=1e6, steps=2)
    of_fever, of_qa = task_examples("fever", TASK, QUESTIONS), _texts()
    kinds = [of_fever if number % 4 < claims else of_qa for number in range(size)]
    batch = [kind[number % len(kind)] for number, kind in enumerate(kinds)]
    trained = [parameter for parameter in trainer.model.parameters() if parameter.requires_grad]
    alone = [
        trainer.batch_loss(kind).per_example.sum()
        for kind in ([one for one in batch if one.label], [one for one in batch if not one.label])
    ]
    expected = torch.autograd.grad(sum(alone, torch.zeros(())) / size, trained, allow_unused=True)
    step = trainer.step(0, batch, trainer.optimizer())
    assert step.loss_per_example == pytest.approx(sum(loss.item() for loss in alone) / size, rel=1e-5)
    scale = max(gradient.abs().max().item() for gradient in expected if gradient is not None)
    for parameter, gradient in zip(trained, expected, strict=True):
        assert (parameter.grad is None) == (gradient is None)
        if gradient is not None:
            torch.testing.assert_close(parameter.grad, gradient, rtol=1e-3, atol=1e-5 * scale)


def test_a_loss_of_labels_wants_one_for_each_question(model: RagModel) -> None:
    fresh = RagModel("rag-token", model.generator, head=LabelHead(list(LABELS), model.generator.config.d_model))
    scores = torch.tensor(SCORES, dtype=torch.float64)
    with pytest.raises(ValueError, match="2 questions, 2 claims and 1 labels; give one of each"):
        fresh.label_loss(_inputs(), scores, fresh.generator.targets(CLAIMS), list(LABELS)[:1])


def test_a_head_of_another_width_is_refused(tmp_path: Path) -> None:
    LabelHead(["A", "B"], 99).save(tmp_path / HEAD)
    assert LabelHead.load(tmp_path / HEAD, ["A", "B"], 99).linear.in_features == 99
    with pytest.raises(CheckpointError, match="is no head of the labels A, B over 16 numbers"):
        LabelHead.load(tmp_path / HEAD, ["A", "B"], 16)


def test_a_model_without_the_head_of_a_task_is_refused_in_words(tmp_path: Path) -> None:
    rag = tiny_rag(tmp_path, "rag-token")
    with pytest.raises(ConfigError, match="this model has none: train it on a task with classification = 'head'"):
        list(answer_questions(rag, TASK, QUESTIONS))
    with pytest.raises(ConfigError, match="has the labels A, B, the model's head B, C; use the same"):
        require_head(LabelHead(["B", "C"], 2), ["A", "B"])
    with pytest.raises(ValueError, match="is for a task with labels"):
        TaskConfig(reader="open-qa", test="t", classification="head")


def test_the_order_of_labels_in_the_study_changes_no_probability(model: RagModel, tmp_path: Path) -> None:
    inputs, backwards = _inputs(), list(LABELS)[::-1]
    with torch.no_grad():
        encoded = model.generator.encode(inputs.input_ids.flatten(0, 1), inputs.attention_mask.flatten(0, 1))
        prior = prior_logprobs(torch.tensor(SCORES, dtype=torch.float64), torch.tensor(FOUND))
        given, turned = (classify_by_head(model, encoded, prior, CLAIMS, order) for order in (list(LABELS), backwards))
    assert not torch.equal(given.probs, given.probs.flip(1))
    torch.testing.assert_close(turned.probs, given.probs.flip(1))
    torch.testing.assert_close(turned.posterior_probs, given.posterior_probs.flip(1))
    trainer, _ = _trained(tmp_path, "rag-token", order=backwards)
    rag = replace(tiny_rag(tmp_path, "rag-token"), model=trainer.model, retriever=trainer.retriever)
    made = answer_questions(rag, TASK, QUESTIONS)
    assert [one.text for one in made] == [question.answers[0] for question in QUESTIONS]
