"""Which passage is behind an answer, and behind each token of it."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from rag.config import TaskConfig
from rag.modeling.tokenizer import GeneratorTokenizer
from rag.pipeline import answer_questions
from rag.predictions import predict_to_folder, read_predictions
from rag.records import Prediction, Question
from tests.support.tiny_models import bart_tokenizer, t5_tokenizer
from tests.support.tiny_rag import tiny_rag

QA = TaskConfig(reader="open-qa", test="t", max_new_tokens=5, num_beams=2)
FEVER = TaskConfig(reader="fever", test="t", labels={"SUPPORTS": "a", "REFUTES": "b", "NOT ENOUGH INFO": "c"})
QUESTIONS = [
    Question(f"q{number}", "open-qa", text, ("x",))
    for number, text in enumerate(["the capital of peru", "who is the king", "what is the capital of france"])
]


def _answers(folder: Path, family: str, task: TaskConfig = QA, n_docs: int = 3) -> list[Prediction]:
    rag = tiny_rag(folder, family, n_docs)  # type: ignore[arg-type]
    return list(answer_questions(rag, task, QUESTIONS))


def test_each_token_of_rag_token_has_its_own_posterior(tmp_path: Path) -> None:
    for one in _answers(tmp_path, "rag-token"):
        assert one.tokens
        assert "".join(token.text for token in one.tokens) == one.text
        for token in one.tokens:
            assert len(token.posterior) == len(one.retrieved) == 3
            assert sum(token.posterior) == pytest.approx(1, abs=1e-5)


def test_tokens_do_not_lean_on_passages_that_are_not_there(tmp_path: Path) -> None:
    for one in _answers(tmp_path, "rag-token", n_docs=5):
        assert {len(token.posterior) for token in one.tokens} == {3}


@pytest.mark.parametrize("family", ["rag-sequence", "closed-book"])
def test_other_families_have_no_posterior_of_a_token(tmp_path: Path, family: str) -> None:
    assert all(one.tokens == () and one.candidates for one in _answers(tmp_path, family))


@pytest.mark.parametrize("family", ["rag-token", "rag-sequence"])
def test_candidates_are_distinct_and_the_best_is_the_prediction(tmp_path: Path, family: str) -> None:
    for one in _answers(tmp_path, family):
        assert one.candidates[0] == (one.text, one.logprob)
        assert len(set(one.candidates)) == len(one.candidates) > 1
        logprobs = [candidate.logprob for candidate in one.candidates]
        if family == "rag-sequence":  # beams of RAG-Token compete by length-normalised scores
            assert logprobs == sorted(logprobs, reverse=True)


@pytest.mark.parametrize("family", ["rag-token", "rag-sequence", "closed-book"])
def test_a_label_has_the_probabilities_of_all(tmp_path: Path, family: str) -> None:
    for one in _answers(tmp_path, family, FEVER):
        assert [label for label, _ in one.label_probs] == list(FEVER.labels)
        assert sum(prob for _, prob in one.label_probs) == pytest.approx(1, abs=1e-6)
        assert one.text == max(one.label_probs, key=lambda label: label.prob).label


@pytest.mark.parametrize("task", [QA, FEVER])
def test_evidence_survives_the_disk(tmp_path: Path, task: TaskConfig) -> None:
    rag = tiny_rag(tmp_path, "rag-token", 3)
    made = predict_to_folder(QUESTIONS, lambda chunk: answer_questions(rag, task, chunk), tmp_path / "out")
    assert read_predictions(tmp_path / "out") == made
    assert all(one.label_probs if task.labels else one.tokens for one in made)


def _bytes_tokenizer() -> Tokenizer:
    """A token a byte, as GPT-2 and BART write them, without any merges."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    ids = {token: number for number, token in enumerate(["<s>", "<pad>", "</s>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(ids, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tokenizer


@pytest.mark.parametrize(
    ("tokenizer", "text", "pieces"),
    [
        (GeneratorTokenizer(t5_tokenizer(), 0, 1), "the capital of paris", ["the", " capital", " of", " paris", ""]),
        (GeneratorTokenizer(bart_tokenizer(), 1, 2), "the a", ["", "the", " a", ""]),
        (GeneratorTokenizer(_bytes_tokenizer(), 1, 2), "aé b", ["", "a", "", "é", "", " b", ""]),
    ],
)
def test_pieces_of_a_text_are_all_of_it(tokenizer: GeneratorTokenizer, text: str, pieces: list[str]) -> None:
    ids = tokenizer.encode([text])[0].ids.tolist()
    assert tokenizer.pieces(ids) == pieces
    assert "".join(pieces) == tokenizer.decode(ids) == text
