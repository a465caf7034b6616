"""What goes wrong for people who fine-tune and decode RAG with other tools: each case once, here or where it is named.

``SHOWN_ELSEWHERE`` lists, by kind, the tests that show the right behaviour in the place it belongs to.
"""

from pathlib import Path

import pytest
import torch
from transformers import RagSequenceForGeneration

from flows.evaluate_model import _OF_DECODING
from rag.config import TaskConfig
from rag.decoding import sequence_level, token_level
from rag.decoding.hypotheses import BeamOptions
from rag.modeling.generator import Generator
from rag.modeling.inputs import GeneratorInputs
from rag.modeling.marginalize import prior_logprobs
from rag.modeling.models import Family, RagModel
from tests.support.hf_rag import hf_rag
from tests.support.tiny_models import random_ids, tiny_generator

ROOT = Path(__file__).resolve().parents[2]
SHOWN_ELSEWHERE = {
    "a reloaded head that is no longer the embedding": [
        "tests/unit/test_hf_checkpoint.py::test_a_reloaded_model_whose_head_was_saved_alone_is_still_tied",
        "tests/unit/test_generator.py::"
        "test_loaded_weights_equal_the_file_and_the_head_is_tied_only_where_the_file_ties_it",
    ],
    "n_docs at call time obeyed by half": [
        "tests/unit/test_sweep.py::test_n_docs_at_call_time_is_that_of_the_model",
        "tests/unit/test_sweep.py::test_the_first_of_many_are_what_asking_for_few_finds",
    ],
    "a lossy index behind a headline number": [
        "tests/integration/test_recall_gate.py::"
        "test_the_study_stops_before_any_model_is_trained_and_says_what_to_change",
        "tests/unit/test_recall.py::test_recall_counts_what_an_approximate_index_misses",
    ],
    "the same passages for every question": [
        "tests/unit/test_training.py::test_a_constant_question_encoder_is_seen",
    ],
    "a loss that is the sum of its batch": [
        "tests/unit/test_training.py::test_the_batch_is_the_mean_of_its_examples",
    ],
    "missing passages read as the last row": [
        "tests/unit/test_index_conformance.py::test_more_passages_than_there_are_is_masked_and_never_a_row",
        "tests/unit/test_pipeline.py::test_more_passages_than_the_index_has_are_masked",
        "tests/unit/test_marginalize.py::test_a_masked_passage_has_prior_zero_whatever_its_score",
    ],
    "a default retriever that no longer loads": [
        "tests/unit/test_sources.py::test_hf_articles_in_shards",
        "tests/unit/test_index_conformance.py::test_saved_and_loaded_finds_the_same",
    ],
    "documentation that does not run": [
        "tests/unit/test_docs.py::test_the_readme_names_every_command_and_no_other",
    ],
    "precision of a set where a list was ranked": [
        "tests/unit/test_retrieval_score.py::test_places_and_pages_are_counted_as_each_metric_says",
    ],
}


@pytest.mark.parametrize("kind", SHOWN_ELSEWHERE)
def test_what_is_shown_elsewhere_is_there(kind: str) -> None:
    for name in SHOWN_ELSEWHERE[kind]:
        path, _, test = name.partition("::")
        assert f"\ndef {test}(" in (ROOT / path).read_text(encoding="utf-8"), name


@pytest.fixture(scope="module")
def bart(tmp_path_factory) -> Generator:
    generator = tiny_generator("bart", tmp_path_factory.mktemp("bart"), seed=1)
    generator.first_token_ids = ()  # theirs forces none
    return generator


@torch.no_grad()
def test_four_passages_asked_of_a_model_made_with_two_are_four(bart: Generator) -> None:
    ids, mask = random_ids(2 * 4, seed=5)
    mask, scores = torch.ones_like(mask), torch.randn(2, 4, generator=torch.Generator().manual_seed(5))
    asked = {
        "context_input_ids": ids, "context_attention_mask": mask.long(), "doc_scores": scores, "num_beams": 2,
        "max_length": 7, "min_length": 0, "early_stopping": False, "length_penalty": 1.0, "do_sample": False,
    }  # fmt: skip
    with pytest.raises(RuntimeError, match="must match the size"):
        hf_rag(RagSequenceForGeneration, "bart", 1, n_docs=2).generate(**asked, n_docs=4)
    expected = hf_rag(RagSequenceForGeneration, "bart", 1, n_docs=4).generate(**asked).tolist()
    encoded, prior = bart.encode(ids, mask), prior_logprobs(scores)
    for row, found in zip(expected, sequence_level.thorough(bart, encoded, prior, BeamOptions(2, 6)), strict=True):
        assert list(found[0].token_ids) == row[1 : 1 + len(found[0].token_ids)]


def test_what_decides_an_answer_is_part_of_the_identity_of_predictions() -> None:
    """k is the model's; beams and mode are the task's. A new option must be put on one side or the other."""
    others = {"reader", "train", "train_answers", "dev", "test", "answers", "expected_test_rows", "calibrate"}
    assert set(TaskConfig.model_fields) == _OF_DECODING | others


def test_the_papers_decoding_can_be_asked_for_and_is_the_default_of_question_answering() -> None:
    task = TaskConfig(reader="open-qa", test="t")
    assert (task.decoding, task.num_beams, task.sequence_decoding) == ("beam", 1, "thorough")
    generation = TaskConfig(reader="msmarco", test="t", num_beams=4, sequence_decoding="fast")
    assert (generation.num_beams, generation.sequence_decoding) == (4, "fast")


@pytest.mark.parametrize("family", ["rag-sequence", "rag-token"])
@torch.no_grad()
def test_the_prior_counts_for_answers_of_every_length(family: Family, bart: Generator) -> None:
    model = RagModel(family, bart)
    ids, mask = random_ids(2, seed=9)
    inputs = GeneratorInputs(ids[None], mask[None])

    def loss(target: list[int], scores: list[float]) -> float:
        targets = torch.tensor([target])
        every = torch.ones_like(targets, dtype=torch.bool)
        return model.loss(inputs, torch.tensor([scores]), targets, every).per_example.item()

    def theirs(target: list[int], scores: list[float]) -> float:
        output = hf_rag(RagSequenceForGeneration, "bart", 1, n_docs=2)(
            context_input_ids=ids, context_attention_mask=mask.long(), doc_scores=torch.tensor([scores]),
            labels=torch.tensor([[2, *target]]), reduce_loss=False,
        )  # fmt: skip
        return float(output.loss[0])

    first, second = [9.0, -9.0], [-9.0, 9.0]
    assert theirs([2], first) == pytest.approx(theirs([2], second), abs=1e-5)  # the end alone: theirs has no prior
    assert theirs([7, 2], first) != pytest.approx(theirs([7, 2], second), abs=0.1)
    for target in ([2], [7, 2]):
        tokens = model.token_logprobs(inputs, torch.tensor([target]), torch.ones(1, len(target), dtype=torch.bool))
        for scores, passage in ((first, 0), (second, 1)):
            assert loss(target, scores) == pytest.approx(-tokens[0, passage].sum().item(), abs=1e-4)
        assert loss(target, first) != pytest.approx(loss(target, second), abs=0.1)


def test_equal_examples_cost_the_same_alone_and_in_a_batch(bart: Generator) -> None:
    ids, mask = random_ids(2, seed=9)
    targets = torch.tensor([[7, 8, 2]])
    for family in ("rag-sequence", "rag-token"):
        model, losses = RagModel(family, bart), []
        for count in (1, 8):
            inputs = GeneratorInputs(ids.expand(count, -1, -1), mask.expand(count, -1, -1))
            every = torch.ones(count, 3, dtype=torch.bool)
            losses.append(model.loss(inputs, torch.tensor([[1.0, 0.0]] * count), targets.expand(count, -1), every))
        one, eight = losses
        torch.testing.assert_close(eight.per_example, one.per_example.expand(8), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(eight.per_token, one.per_token, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_a_phantom_passage_can_neither_answer_nor_be_cited(bart: Generator) -> None:
    """Theirs gave a missing passage the score 0.00, which beats a real one of -1.64."""
    ids, mask = random_ids(3, seed=7)
    scores, found = torch.tensor([[-1.64, -2.0, 0.0]]), torch.tensor([[True, True, False]])
    encoded = bart.encode(ids, mask)
    two = encoded.select(slice(0, 2))
    for mode in (token_level.beam, sequence_level.thorough, sequence_level.fast):
        [with_phantom] = mode(bart, encoded, prior_logprobs(scores, found), BeamOptions(3, 5))
        [without] = mode(bart, two, prior_logprobs(scores[:, :2]), BeamOptions(3, 5))
        assert [one.token_ids for one in with_phantom] == [one.token_ids for one in without]
        assert [one.logprob for one in with_phantom] == pytest.approx([one.logprob for one in without], abs=1e-4)
        assert all(one.posterior[2] == 0 and one.cited < 2 for one in with_phantom)
