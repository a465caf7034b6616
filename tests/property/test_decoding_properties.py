"""Every kind of decoding on random small questions, against all answers there are and against itself in a batch."""

from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.decoding import labels, sequence_level, token_level
from rag.decoding.hypotheses import BeamOptions, Hypotheses
from rag.modeling.generator import EncodedPassages, Generator
from rag.modeling.inputs import GeneratorInputs
from rag.modeling.marginalize import prior_logprobs
from rag.modeling.models import Family, RagModel
from rag.modeling.tokenizer import pad_rows
from tests.support import oracle
from tests.support.tiny_models import random_ids, random_passages, tiny_generator

VOCABULARY, LONGEST = 6, 3
MODES = [token_level.beam, sequence_level.thorough, sequence_level.fast]
quick = settings(max_examples=8, deadline=None, derandomize=True, database=None)


@pytest.fixture(scope="module", params=["flan-t5", "bart"])
def generator(request, tmp_path_factory) -> Generator:
    """Few tokens, so that every possible answer can be tried; nothing is forced."""
    made = tiny_generator(request.param, tmp_path_factory.mktemp(request.param), seed=5, vocabulary=VOCABULARY)
    made.first_token_ids = ()
    return made


class Asked(NamedTuple):
    """One question: what its passages are drawn from, their scores, and which of them are there."""

    seed: int
    scores: list[float]
    found: list[bool]

    def passages(self, generator: Generator, padding: int = 0) -> EncodedPassages:
        encoded = random_passages(generator, len(self.scores), self.seed, VOCABULARY)
        return EncodedPassages(
            torch.nn.functional.pad(encoded.hidden, (0, 0, 0, padding), value=3.0),
            torch.nn.functional.pad(encoded.attention_mask, (0, padding), value=False),
        )

    @property
    def prior(self) -> torch.Tensor:
        return prior_logprobs(torch.tensor([self.scores]), torch.tensor([self.found]))


@st.composite
def asked(draw, n_docs: int | None = None) -> Asked:
    count = draw(st.integers(1, 3)) if n_docs is None else n_docs
    found = draw(st.lists(st.booleans(), min_size=count, max_size=count).filter(any))
    scores = draw(st.lists(st.floats(-3, 3), min_size=count, max_size=count))
    return Asked(draw(st.integers(0, 10**6)), scores, found)


def scored(generator: Generator, one: Asked, naive) -> dict[tuple[int, ...], float]:
    """log p(y|x) of every answer there is, by teacher forcing and plain loops."""
    space = oracle.all_hypotheses(VOCABULARY, generator.eos_token_id, LONGEST)
    n_docs = len(one.scores)
    ids, mask = pad_rows(space, generator.pad_token_id)
    with torch.no_grad():
        rows = generator.token_logprobs(one.passages(generator), ids.repeat(n_docs, 1), mask.repeat(n_docs, 1))
    tokens = rows.view(n_docs, *ids.shape).transpose(0, 1).tolist()
    prior = one.prior[0].tolist()
    return {ids: naive(tokens[place], prior, mask[place].tolist()) for place, ids in enumerate(space)}


@pytest.mark.parametrize(
    ("mode", "naive"), [(token_level.beam, oracle.token), (sequence_level.thorough, oracle.sequence)]
)
@quick
@given(one=asked())
def test_beams_as_wide_as_the_space_are_exhaustive_search(mode, naive, generator: Generator, one: Asked) -> None:
    expected = scored(generator, one, naive)
    options = BeamOptions(num_beams=len(expected), max_new_tokens=LONGEST, length_penalty=0.0)
    [found] = mode(generator, one.passages(generator), one.prior, options)
    assert {hypothesis.token_ids for hypothesis in found} == set(expected)
    assert [hypothesis.logprob for hypothesis in found] == pytest.approx(
        [expected[hypothesis.token_ids] for hypothesis in found], abs=1e-4
    )
    assert [hypothesis.logprob for hypothesis in found] == sorted(
        (hypothesis.logprob for hypothesis in found), reverse=True
    )


@pytest.mark.parametrize("naive", [oracle.token, oracle.sequence])
@quick
@given(one=asked())
def test_all_answers_of_bounded_length_are_one_certainty(naive, generator: Generator, one: Asked) -> None:
    assert oracle.log_sum_exp(list(scored(generator, one, naive).values())) == pytest.approx(0.0, abs=1e-4)


@quick
@given(one=asked(), num_beams=st.integers(1, 5))
def test_fast_finds_what_thorough_finds_and_never_scores_it_higher(
    generator: Generator, one: Asked, num_beams: int
) -> None:
    arguments = generator, one.passages(generator), one.prior, BeamOptions(num_beams, 4)
    [thorough], [fast] = sequence_level.thorough(*arguments), sequence_level.fast(*arguments)
    exact = {hypothesis.token_ids: hypothesis.logprob for hypothesis in thorough}
    assert {hypothesis.token_ids for hypothesis in fast} == set(exact)
    assert len(exact) == len(thorough) == len(fast) <= num_beams * sum(one.found)
    for hypothesis in fast:
        assert hypothesis.logprob <= exact[hypothesis.token_ids] + 1e-4
    for hypothesis in (*thorough, *fast):
        assert sum(hypothesis.posterior) == pytest.approx(1.0, abs=1e-5)
        assert all(share == 0 for share, there in zip(hypothesis.posterior, one.found, strict=True) if not there)


@pytest.mark.parametrize("mode", MODES)
@quick
@given(one=asked(n_docs=1), copies=st.integers(2, 3), num_beams=st.integers(1, 4))
def test_copies_of_a_passage_propose_each_answer_once_and_change_nothing(
    mode, generator: Generator, one: Asked, copies: int, num_beams: int
) -> None:
    encoded, options = one.passages(generator), BeamOptions(num_beams, 4)
    [expected] = mode(generator, encoded, one.prior, options)
    several = encoded.select(torch.zeros(copies, dtype=torch.long))
    [found] = mode(generator, several, prior_logprobs(torch.zeros(1, copies)), options)
    same(found, expected, evidence=False)
    assert all(hypothesis.posterior == pytest.approx([1 / copies] * copies, abs=1e-4) for hypothesis in found)


def same(ours: Hypotheses, theirs: Hypotheses, evidence: bool = True) -> None:
    assert [one.token_ids for one in ours] == [one.token_ids for one in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-4)
        assert one.finished == other.finished
        if evidence:
            assert one.posterior == pytest.approx(other.posterior, abs=1e-4)


RULES = [
    BeamOptions(1, 5),
    BeamOptions(3, 5, min_new_tokens=2, no_repeat_ngram_size=2),
    BeamOptions(3, 5, length_penalty=2.0, early_stopping=True),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("options", RULES)
@settings(quick, max_examples=3)
@given(several=st.lists(asked(n_docs=2), min_size=2, max_size=5), padding=st.integers(0, 3))
def test_neighbours_and_padding_change_no_answer(
    mode, options: BeamOptions, generator: Generator, several: list[Asked], padding: int
) -> None:
    together = joined([one.passages(generator, padding) for one in several])
    found = mode(generator, together, torch.cat([one.prior for one in several]), options)
    for one, ours in zip(several, found, strict=True):
        [alone] = mode(generator, one.passages(generator), one.prior, options)
        same(ours, alone)


@pytest.mark.parametrize("compact_at", [0.0, token_level._COMPACT_AT, 2.0])
@pytest.mark.parametrize("options", [BeamOptions(1, 10), BeamOptions(3, 10)])
def test_when_finished_questions_leave_the_batch_changes_no_answer(
    options: BeamOptions, compact_at: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question that is done but still in the batch must not take a longer answer afterwards."""
    generator = tiny_generator("bart", tmp_path / "bart", seed=1)
    passages, prior = random_passages(generator, 16, 0), torch.zeros(16, 1)
    alone = [token_level.beam(generator, passages.select(slice(n, n + 1)), prior[:1], options)[0] for n in range(16)]
    monkeypatch.setattr(token_level, "_COMPACT_AT", compact_at)
    for ours, other in zip(token_level.beam(generator, passages, prior, options), alone, strict=True):
        same(ours, other)


@settings(quick, max_examples=3)
@given(several=st.lists(asked(n_docs=2), min_size=2, max_size=5), padding=st.integers(0, 3))
def test_neighbours_and_padding_change_no_label(generator: Generator, several: list[Asked], padding: int) -> None:
    words = {"yes": 3, "no": 4, "maybe": 5}
    together = joined([one.passages(generator, padding) for one in several])
    found = labels.classify(generator, together, torch.cat([one.prior for one in several]), words)
    for number, one in enumerate(several):
        alone = labels.classify(generator, one.passages(generator), one.prior, words)
        for ours, other in zip(found, alone, strict=True):
            torch.testing.assert_close(ours[[number]], other, rtol=1e-4, atol=1e-5)


def joined(parts: list[EncodedPassages]) -> EncodedPassages:
    return EncodedPassages(*(torch.cat([part[field] for part in parts]) for field in range(2)))


@pytest.mark.parametrize("family", ["rag-sequence", "rag-token"])
@quick
@given(one=asked(), length=st.integers(0, 1), others=st.integers(0, 2))
def test_an_empty_answer_is_sure_and_one_token_makes_both_families_equal(
    family: Family, generator: Generator, one: Asked, length: int, others: int
) -> None:
    n_docs = len(one.scores)
    ids, mask = random_ids((1 + others) * n_docs, one.seed, VOCABULARY)
    targets, target_mask = random_ids(1 + others, one.seed + 1, VOCABULARY, length=max(1, length, min(others, 1) * 3))
    target_mask[0] = torch.arange(targets.shape[1]) < length
    inputs = GeneratorInputs(ids.view(1 + others, n_docs, -1), mask.view(1 + others, n_docs, -1))
    scores, found = torch.tensor([one.scores] * (1 + others)), torch.tensor([one.found] * (1 + others))
    with torch.no_grad():
        loss = RagModel(family, generator).loss(inputs, scores, targets, target_mask, found)
        other = RagModel("rag-sequence", generator).loss(inputs, scores, targets, target_mask, found)
    torch.testing.assert_close(loss.per_example[0], other.per_example[0], rtol=0, atol=1e-5)
    torch.testing.assert_close(loss.posterior_logprobs[0].exp().sum(), torch.tensor(1.0))
    if not length:
        assert loss.per_example[0] == 0
        torch.testing.assert_close(loss.posterior_logprobs[0], one.prior[0])
