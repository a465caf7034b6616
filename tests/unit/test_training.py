"""Training on a tiny model: it learns, it is deterministic, and it goes on where it was stopped."""

from pathlib import Path

import pytest
import torch

from rag.config import ModelConfig, TaskConfig
from rag.errors import CheckpointError, DataError, TrainingError
from rag.modeling.inputs import assemble
from rag.records import Question
from rag.retrieval.hybrid import HybridRetriever
from rag.retrieval.retriever import DenseRetriever
from rag.training.checkpoint import ModelCard, load_checkpoint, save_checkpoint
from rag.training.examples import Example, example_stream, task_examples
from rag.training.loop import Trainer, TrainingStep
from rag.training.monitors import collapsed_retrieval
from tests.support.tiny_encoders import encoder_config
from tests.support.tiny_rag import tiny_rag

EXAMPLES = {
    "qa": [
        Example("qa", "the capital of peru", "the capital of peru", "a"),
        Example("qa", "the capital of france", "the capital of france", "b"),
        Example("qa", "who is the king", "who is the king", "c"),
    ]
}


def config(**options: object) -> ModelConfig:
    defaults: dict[str, object] = {
        "family": "rag-token", "corpus": "c", "tasks": {"qa": 1}, "n_docs": 2, "steps": 4, "batch_size": 3,
        "learning_rate": 1e-2, "question_encoder_learning_rate": 1e-3, "checkpoint_every": 2,
    }  # fmt: skip
    return ModelConfig.model_validate({**defaults, **options})


def trainer(folder: Path, settings: ModelConfig) -> Trainer:
    rag = tiny_rag(folder, settings.family, retriever=settings.retriever)
    return Trainer(rag.model, settings, rag.layout, rag.max_source_tokens, 7, rag.retriever)


def weights(one: Trainer) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in one.model.state_dict().items()}


@pytest.mark.parametrize(
    ("family", "retriever"),
    [
        ("rag-token", "dense"), ("rag-token", "bm25"), ("rag-token", "hybrid"),
        ("rag-sequence", "dense"), ("rag-sequence", "bm25"), ("rag-sequence", "hybrid"), ("closed-book", "dense"),
    ],
)  # fmt: skip
def test_the_loss_falls(tmp_path: Path, family: str, retriever: str) -> None:
    corpus = None if family == "closed-book" else "c"
    settings = config(family=family, corpus=corpus, retriever=retriever, steps=12, dropout=False)
    log = trainer(tmp_path, settings).train(EXAMPLES, tmp_path)
    assert log[-1].loss_per_token < 0.7 * log[0].loss_per_token
    assert [step.step for step in log] == list(range(12))


def test_question_encoder_and_generator_move_and_nothing_frozen_does(tmp_path: Path) -> None:
    one = trainer(tmp_path, config(frozen_encoder_layers=1))
    before = weights(one)
    one.train(EXAMPLES, tmp_path)
    moved = {name for name, tensor in weights(one).items() if not torch.equal(tensor, before[name])}
    assert any(name.startswith("question_encoder") for name in moved)
    assert any("decoder" in name for name in moved)
    assert not any("encoder.block.0." in name for name in moved if "question" not in name and "decoder" not in name)


def test_bm25_trains_the_generator_alone(tmp_path: Path) -> None:
    """Its scores are constants: there is no encoder, and p(z|x) is the same before and after."""
    one = trainer(tmp_path, config(retriever="bm25"))
    assert one.retriever is not None
    assert one.encoder is None
    before, asked = weights(one), [example.question for example in EXAMPLES["qa"]]
    scores = one.retriever.retrieve(asked, 2).doc_scores
    log = one.train(EXAMPLES, tmp_path)
    assert {name.split(".")[0] for name in before} == {"generator"}
    assert not all(torch.equal(tensor, before[name]) for name, tensor in weights(one).items())
    assert one.retriever.retrieve(asked, 2).doc_scores.tolist() == scores.tolist()
    assert log[0].distinct_top1 == 1.0


def test_in_a_hybrid_the_gradient_flows_through_the_dense_part_alone(tmp_path: Path) -> None:
    """The encoder moves, and the loss is that of inner product plus weighted BM25."""
    one = trainer(tmp_path, config(retriever="hybrid", family="rag-sequence", dropout=False))
    assert isinstance(one.retriever, HybridRetriever)
    assert one.encoder is not None
    batch = EXAMPLES["qa"]
    loss = one.batch_loss(batch).per_example
    gradient = torch.autograd.grad(loss.sum(), list(one.encoder.module.parameters()), allow_unused=True)
    assert any(part is not None and part.abs().max() > 0 for part in gradient)
    found = one.retriever.retrieve([example.question for example in batch], 2)
    targets = one.model.generator.targets([example.target for example in batch])
    inputs = assemble(
        [example.question for example in batch], found.pairs(), one.layout, one.model.generator.tokenizer, 40
    )
    scores, mask = torch.from_numpy(found.doc_scores), torch.from_numpy(found.mask)
    with torch.no_grad():
        expected = one.model.loss(inputs, scores, targets.ids, targets.mask, mask).per_example
    torch.testing.assert_close(loss.detach(), expected, atol=1e-4, rtol=0)


def test_a_stopped_training_ends_with_the_same_weights(tmp_path: Path) -> None:
    straight = trainer(tmp_path / "a", config(steps=5))
    log = straight.train(EXAMPLES, tmp_path / "a")

    class Killed(Exception):
        pass

    def dying(steps: range) -> object:
        for step in steps:
            if step == 3:
                raise Killed
            yield step

    stopped = trainer(tmp_path / "b", config(steps=5))
    with pytest.raises(Killed):
        stopped.train(EXAMPLES, tmp_path / "b", dying)  # type: ignore[arg-type]
    again = trainer(tmp_path / "c", config(steps=5))
    resumed_log = again.train(EXAMPLES, tmp_path / "b")
    assert resumed_log == log
    assert all(torch.equal(tensor, weights(straight)[name]) for name, tensor in weights(again).items())


def test_a_state_that_was_half_replaced_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    """Killed between the removal of the old state and the renaming of the new one."""
    one = trainer(tmp_path / "a", config(steps=3, checkpoint_every=2))
    one.train(EXAMPLES, tmp_path)
    state = tmp_path / ".resume"
    state.rename(tmp_path / ".resume.new")
    state.mkdir()
    (state / "optimizer.safetensors").write_bytes(b"half removed")
    again = trainer(tmp_path / "b", config(steps=3, checkpoint_every=2))
    assert [step.step for step in again.train(EXAMPLES, tmp_path)] == [0, 1, 2]
    assert all(torch.equal(tensor, weights(one)[name]) for name, tensor in weights(again).items())
    assert not (tmp_path / ".resume.new").exists()


def test_the_batch_is_the_mean_of_its_examples(tmp_path: Path) -> None:
    """Eight equal examples give the loss and gradient of one."""
    steps = []
    for size in (1, 8):
        settings = config(batch_size=size, steps=1, dropout=False)
        steps += trainer(tmp_path / str(size), settings).train({"qa": EXAMPLES["qa"][:1]}, tmp_path / str(size))
    one, eight = steps
    assert isinstance(one, TrainingStep)
    assert eight.loss_per_example == pytest.approx(one.loss_per_example, rel=1e-5)
    assert eight.gradient_norm == pytest.approx(one.gradient_norm, rel=1e-4)


def test_a_constant_question_encoder_is_seen(tmp_path: Path) -> None:
    """A collapsed retriever finds the same passage for every question."""
    one = trainer(tmp_path, config(steps=1, batch_size=3))
    assert one.encoder is not None
    with torch.no_grad():
        for parameter in one.encoder.module.parameters():
            parameter.zero_()
        one.encoder.module.encoder.layer[-1].output.LayerNorm.bias.fill_(1.0)  # type: ignore[union-attr, index]
    log = one.train(EXAMPLES, tmp_path)
    assert log[0].distinct_top1 == pytest.approx(1 / 3)
    assert "retrieval collapsed" in str(collapsed_retrieval(log * 4, 3))
    assert collapsed_retrieval(log, 3) is None  # three questions may well share a passage once
    assert collapsed_retrieval([step._replace(distinct_top1=2 / 3) for step in log], 3) is None
    assert collapsed_retrieval([step._replace(distinct_top1=None) for step in log], 3) is None


@pytest.mark.parametrize("family", ["rag-token", "rag-sequence"])
def test_steps_in_bfloat16_follow_those_in_float32(tmp_path: Path, family: str) -> None:
    logs = []
    for dtype in (torch.float32, torch.bfloat16):
        one = trainer(tmp_path / str(dtype), config(family=family, dropout=False, learning_rate=1e-3))
        one.model.generator.to(dtype)
        logs.append(one.train(EXAMPLES, tmp_path / str(dtype)))
    exact, rounded = logs
    assert rounded[0].loss_per_token == pytest.approx(exact[0].loss_per_token, rel=0.03)
    assert rounded[0].gradient_norm == pytest.approx(exact[0].gradient_norm, rel=0.1)
    assert rounded[-1].loss_per_token == pytest.approx(exact[-1].loss_per_token, rel=0.15)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_step_on_a_gpu_is_that_of_the_cpu(tmp_path: Path, dtype: torch.dtype) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    losses = []
    for device in ("cpu", "cuda"):
        one = trainer(tmp_path / device, config(steps=2, dropout=False))
        one.model.to(device)
        one.model.generator.to(dtype)
        losses.append([step.loss_per_token for step in one.train(EXAMPLES, tmp_path / device)])
    assert losses[1] == pytest.approx(losses[0], rel=1e-4 if dtype == torch.float32 else 0.05)


def test_a_training_without_any_gradient_is_no_training(tmp_path: Path) -> None:
    one = trainer(tmp_path, config(steps=2, question_encoder_learning_rate=0))
    with torch.no_grad():
        for parameter in one.model.generator.parameters():
            parameter.zero_()
    with pytest.raises(TrainingError, match="no gradient in any of 2 steps"):
        one.train(EXAMPLES, tmp_path)


def test_no_steps_are_for_a_model_that_was_trained_before(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="steps = 0 trains nothing"):
        config(steps=0)
    one = trainer(tmp_path, config(steps=0, init_from="another"))
    before = weights(one)
    assert one.train(EXAMPLES, tmp_path) == []
    assert all(torch.equal(tensor, before[name]) for name, tensor in weights(one).items())


def test_a_loss_that_is_not_finite_stops_the_training(tmp_path: Path) -> None:
    one = trainer(tmp_path, config())
    with torch.no_grad():
        next(one.model.generator.parameters()).fill_(float("nan"))
    with pytest.raises(TrainingError, match="step 0"):
        one.train(EXAMPLES, tmp_path)


def test_a_checkpoint_comes_back_with_equal_losses(tmp_path: Path) -> None:
    one = trainer(tmp_path, config(steps=1))
    one.train(EXAMPLES, tmp_path / "training")
    card = ModelCard(
        family="rag-token", retriever="dense", n_docs=2, layout=one.layout, max_source_tokens=40,
        encoder=encoder_config(score_scale=5.0), passage_fingerprint="f", trained_steps=1,
    )  # fmt: skip
    save_checkpoint(tmp_path / "model", one.model, one.encoder, card)
    loaded = load_checkpoint(tmp_path / "model", "rag-token", "dense", "f")
    old = one.retriever
    assert isinstance(old, DenseRetriever)
    assert loaded.encoder is not None
    retriever = DenseRetriever(loaded.encoder, old.index, old.passages, old.table)
    again = Trainer(loaded.model, one.config, one.layout, 40, 7, retriever)
    with torch.no_grad():
        expected, found = (t.batch_loss(EXAMPLES["qa"]).per_example for t in (one, again))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    with pytest.raises(CheckpointError, match="rag-token model and was asked for as rag-sequence"):
        load_checkpoint(tmp_path / "model", "rag-sequence", "dense")
    with pytest.raises(CheckpointError, match="same context encoder"):
        load_checkpoint(tmp_path / "model", "rag-token", "dense", "another")
    with pytest.raises(CheckpointError, match="no model at"):
        load_checkpoint(tmp_path / "nowhere", "rag-token", "dense")
    with pytest.raises(CheckpointError, match="trained with the retriever dense and was asked for with bm25"):
        load_checkpoint(tmp_path / "model", "rag-token", "bm25")


def test_a_model_of_bm25_comes_back_without_an_encoder(tmp_path: Path) -> None:
    one = trainer(tmp_path, config(steps=1, retriever="bm25"))
    one.train(EXAMPLES, tmp_path / "training")
    card = ModelCard(
        family="rag-token", retriever="bm25", n_docs=2, layout=one.layout, max_source_tokens=40, encoder=None,
        passage_fingerprint=None, trained_steps=1,
    )  # fmt: skip
    save_checkpoint(tmp_path / "model", one.model, one.encoder, card)
    assert not (tmp_path / "model" / "question_encoder").exists()
    loaded = load_checkpoint(tmp_path / "model", "rag-token", "bm25")
    assert loaded.encoder is None
    again = Trainer(loaded.model, one.config, one.layout, 40, 7, one.retriever)
    with torch.no_grad():
        expected, found = (t.batch_loss(EXAMPLES["qa"]).per_example for t in (one, again))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    with pytest.raises(CheckpointError, match="trained with the retriever bm25 and was asked for with dense"):
        load_checkpoint(tmp_path / "model", "rag-token", "dense", "f")


def test_targets_are_pairs_or_first_answers_and_labels_become_words() -> None:
    two = Question("q", "open-qa", "who", ("a", "b"))
    assert [one.target for one in task_examples("qa", TaskConfig(reader="open-qa", test="t"), [two])] == ["a", "b"]
    first = TaskConfig(reader="open-qa", test="t", train_answers="first", prefix="p: ")
    assert task_examples("qa", first, [two]) == [Example("qa", "who", "p: who", "a")]
    fever = TaskConfig(reader="fever", test="t", labels={"SUPPORTS": "true"})
    claim = Question("1", "fever", "x is y", ("SUPPORTS",))
    assert task_examples("fever", fever, [claim])[0].target == "true"
    with pytest.raises(DataError, match="REFUTES"):
        task_examples("fever", fever, [claim._replace(answers=("REFUTES",))])


def test_every_example_comes_once_an_epoch() -> None:
    stream = example_stream(EXAMPLES, {"qa": 1.0}, seed=1)
    epochs = [[next(stream).target for _ in range(3)] for _ in range(4)]
    assert all(sorted(epoch) == ["a", "b", "c"] for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 1
    with pytest.raises(DataError, match="no training examples for fever"):
        next(example_stream(EXAMPLES, {"fever": 1.0}, seed=1))
