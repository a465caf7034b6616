"""Hugging Face's RagSequenceForGeneration and RagTokenForGeneration as oracles, on the same tiny random weights.

Their known defects are kept out of the comparison: the prior reaches no target of one token, n_docs at call time
is half obeyed, and generation ignores the attention mask.
"""

from typing import Any

import pytest
import torch
from transformers import RagConfig, RagSequenceForGeneration, RagTokenForGeneration

from rag.decoding import sequence_level, token_level
from rag.decoding.hypotheses import BeamOptions
from rag.modeling.generator import Generator
from rag.modeling.inputs import GeneratorInputs
from rag.modeling.marginalize import prior_logprobs
from rag.modeling.models import Family, LossOutput, RagModel, score_passages
from tests.support.tiny_models import hf_bart, hf_dpr_question_encoder, hf_t5, random_ids, tiny_generator

N_DOCS = 3
FAMILIES: list[tuple[Family, Any]] = [("rag-sequence", RagSequenceForGeneration), ("rag-token", RagTokenForGeneration)]
KINDS = ["bart", "t5", "flan-t5"]


def hf_rag(cls: Any, kind: str, seed: int) -> Any:
    """Theirs, with the generator that ``tiny_generator`` writes for the same kind and seed."""
    generator = hf_bart(seed) if kind == "bart" else hf_t5(seed, tied=kind == "t5")
    generator.config.bos_token_id = 0 if kind == "bart" else None  # theirs asks every generator for it
    head = generator.lm_head.weight.detach().clone()
    encoder = hf_dpr_question_encoder(seed)
    config = RagConfig.from_question_encoder_generator_configs(encoder.config, generator.config, n_docs=N_DOCS)
    model = cls(config=config, question_encoder=encoder, generator=generator).eval()
    if kind == "flan-t5":  # theirs ties the head in silence when the parts are put together
        assert torch.equal(model.generator.lm_head.weight, model.generator.shared.weight)
        model.generator.lm_head.weight = torch.nn.Parameter(head)
    return model


class Batch:
    """Two questions with three passages each, and targets of different lengths, all random."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.question_ids, self.question_mask = random_ids(2, seed)
        ids, mask = random_ids(2 * N_DOCS, seed + 1)
        self.inputs = GeneratorInputs(ids.view(2, N_DOCS, -1), mask.view(2, N_DOCS, -1), 0)
        self.passage_vectors = torch.randn(2, N_DOCS, 16)
        self.target_ids, self.target_mask = random_ids(2, seed + 2, length=5)
        self.target_mask[:, :2] = True

    def their_loss(self, model: Any) -> torch.Tensor:
        pad = model.config.generator.pad_token_id
        start = torch.full((2, 1), model.config.generator.decoder_start_token_id)
        labels = torch.cat([start, self.target_ids.where(self.target_mask, pad)], dim=1)
        vectors = model.question_encoder(self.question_ids, attention_mask=self.question_mask)[0]
        output = model(
            context_input_ids=self.inputs.input_ids.flatten(0, 1),
            context_attention_mask=self.inputs.attention_mask.flatten(0, 1).long(),
            doc_scores=score_passages(vectors, self.passage_vectors), labels=labels, reduce_loss=False,
        )  # fmt: skip
        loss: torch.Tensor = output.loss
        return loss

    def our_loss(self, model: RagModel) -> LossOutput:
        assert model.question_encoder is not None
        vectors = model.question_encoder(self.question_ids, attention_mask=self.question_mask)[0]
        scores = score_passages(vectors, self.passage_vectors)
        return model.loss(self.inputs, scores, self.target_ids, self.target_mask)


def our_model(family: Family, kind: str, seed: int, folder) -> RagModel:
    return RagModel(family, tiny_generator(kind, folder, seed), hf_dpr_question_encoder(seed))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("family", "cls"), FAMILIES)
def test_loss_and_all_gradients_equal_theirs(family: Family, cls: Any, kind: str, tmp_path) -> None:
    for seed in range(3):
        theirs, ours, batch = hf_rag(cls, kind, seed), our_model(family, kind, seed, tmp_path), Batch(seed)
        loss, expected = batch.our_loss(ours).per_example, batch.their_loss(theirs)
        torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-4)
        loss.mean().backward()
        expected.mean().backward()
        assert ours.question_encoder is not None
        for mine, other in [
            (ours.question_encoder, theirs.question_encoder),
            (ours.generator.model, theirs.generator),
        ]:
            gradients = {name: parameter.grad for name, parameter in other.named_parameters()}
            for name, parameter in mine.named_parameters():
                if gradients[name] is None:
                    assert parameter.grad is None, name
                else:
                    torch.testing.assert_close(parameter.grad, gradients[name], rtol=1e-3, atol=1e-4, msg=name)


def test_the_prior_reaches_a_target_of_one_token_as_theirs_does_not(tmp_path) -> None:
    ours, theirs = our_model("rag-sequence", "bart", 1, tmp_path), hf_rag(RagSequenceForGeneration, "bart", 1)
    batch = Batch(1)
    batch.target_mask[:, 1:] = False
    loss = batch.our_loss(ours)
    ours.family = "rag-token"
    torch.testing.assert_close(batch.our_loss(ours).per_example, loss.per_example, rtol=0, atol=1e-6)
    assert not torch.allclose(batch.their_loss(theirs), loss.per_example, atol=1e-2)


def full_rows(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Passages without padding, because their generation ignores the mask."""
    ids, _ = random_ids(2 * N_DOCS, seed)
    return ids, torch.ones_like(ids, dtype=torch.bool)


def generate(model: Any, ids: torch.Tensor, scores: torch.Tensor, num_beams: int) -> list[tuple[int, ...]]:
    output = model.generate(
        context_input_ids=ids, context_attention_mask=torch.ones_like(ids), doc_scores=scores, num_beams=num_beams,
        max_length=7, min_length=0, do_sample=False, early_stopping=False, length_penalty=1.0,
    )  # fmt: skip
    pad, eos = model.config.generator.pad_token_id, model.config.generator.eos_token_id
    rows = [row[1:] for row in output.tolist()]  # theirs begins with the start token
    return [tuple(row[: row.index(eos) + 1] if eos in row else row[: len(row) - trailing(row, pad)]) for row in rows]


def trailing(row: list[int], pad: int) -> int:
    return next((n for n, token in enumerate(reversed(row)) if token != pad), len(row))


@pytest.fixture(scope="module")
def barts(tmp_path_factory) -> list[Generator]:
    generators = [tiny_generator("bart", tmp_path_factory.mktemp("bart"), seed) for seed in range(3)]
    for generator in generators:
        generator.first_token_ids = ()  # theirs does not force <s>
    return generators


@pytest.mark.parametrize("num_beams", [1, 3])
def test_token_beam_finds_what_theirs_finds(num_beams: int, barts: list[Generator]) -> None:
    for seed, generator in enumerate(barts):
        ids, mask = full_rows(seed)
        scores = torch.randn(2, N_DOCS)
        expected = generate(hf_rag(RagTokenForGeneration, "bart", seed), ids, scores, num_beams)
        with torch.no_grad():
            found = token_level.beam(
                generator, generator.encode(ids, mask), prior_logprobs(scores), BeamOptions(num_beams, 6)
            )
        assert [one[0].token_ids for one in found] == expected


@pytest.mark.parametrize("num_beams", [1, 3])
def test_thorough_finds_what_theirs_finds(num_beams: int, barts: list[Generator]) -> None:
    for seed, generator in enumerate(barts):
        ids, mask = full_rows(seed)
        scores = torch.randn(2, N_DOCS)
        expected = generate(hf_rag(RagSequenceForGeneration, "bart", seed), ids, scores, num_beams)
        with torch.no_grad():
            found = sequence_level.thorough(
                generator, generator.encode(ids, mask), prior_logprobs(scores), BeamOptions(num_beams, 6)
            )
        assert [one[0].token_ids for one in found] == expected
