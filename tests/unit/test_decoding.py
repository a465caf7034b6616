import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.decoding import labels, sequence_level, token_level
from rag.decoding.hypotheses import BeamOptions, Hypotheses
from rag.errors import ConfigError
from rag.modeling.generator import EncodedPassages, Generator
from rag.modeling.marginalize import prior_logprobs
from rag.modeling.tokenizer import pad_rows
from tests.support import oracle
from tests.support.tiny_models import VOCABULARY, random_passages, tiny_generator

KINDS = ["t5", "flan-t5", "bart"]
MODES = [token_level.beam, sequence_level.thorough, sequence_level.fast]
OPTIONS = BeamOptions(num_beams=3, max_new_tokens=5)


@pytest.fixture(scope="module", params=KINDS)
def generator(request, tmp_path_factory) -> Generator:
    return tiny_generator(request.param, tmp_path_factory.mktemp(request.param), seed=3)


@pytest.fixture(scope="module", params=["flan-t5", "bart"])
def small(request, tmp_path_factory) -> Generator:
    """A vocabulary of five (six) tokens, so that every possible answer can be tried; nothing is forced."""
    size = 5 if request.param == "flan-t5" else 6
    generator = tiny_generator(request.param, tmp_path_factory.mktemp(request.param), seed=5, vocabulary=size)
    generator.first_token_ids = ()
    return generator


def question(
    generator: Generator, seed: int, n_docs: int = 3, vocabulary: int = VOCABULARY
) -> tuple[EncodedPassages, torch.Tensor]:
    encoded = random_passages(generator, n_docs, seed, vocabulary)
    scores = torch.randn(1, n_docs, generator=torch.Generator().manual_seed(seed))
    return encoded, prior_logprobs(scores)


def batch_of(generator: Generator, seeds: list[int], n_docs: int = 3) -> tuple[EncodedPassages, torch.Tensor]:
    """Several questions side by side, padded to the longest passage."""
    parts = [question(generator, seed, n_docs) for seed in seeds]
    hidden, mask = torch.cat([part.hidden for part, _ in parts]), torch.cat([part.attention_mask for part, _ in parts])
    return EncodedPassages(hidden, mask), torch.cat([prior for _, prior in parts])


def exact(generator: Generator, encoded: EncodedPassages, token_ids: tuple[int, ...]) -> list[list[float]]:
    """log p(y_t|x,z,y_<t) for each passage, by teacher forcing without any cache."""
    return exact_of_all(generator, encoded, [token_ids])[token_ids]


def exact_of_all(
    generator: Generator, encoded: EncodedPassages, hypotheses: list[tuple[int, ...]]
) -> dict[tuple[int, ...], list[list[float]]]:
    n_docs = len(encoded.hidden)
    ids, mask = pad_rows(hypotheses, generator.pad_token_id)
    with torch.no_grad():
        rows = generator.token_logprobs(encoded, ids.repeat(n_docs, 1), mask.repeat(n_docs, 1))
    by_hypothesis = rows.view(n_docs, *ids.shape).transpose(0, 1).tolist()
    return {one: [row[: len(one)] for row in passages] for one, passages in zip(hypotheses, by_hypothesis, strict=True)}


def assert_same(ours: Hypotheses, theirs: Hypotheses) -> None:
    assert [one.token_ids for one in ours] == [one.token_ids for one in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-4)
        assert one.posterior == pytest.approx(other.posterior, abs=1e-4)


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_beam_as_wide_as_the_space_is_exhaustive_search(small: Generator, penalty: float) -> None:
    size = small.config.vocab_size
    encoded, prior = question(small, seed=1, n_docs=2, vocabulary=size)
    space = oracle.all_hypotheses(size, small.eos_token_id, longest=3)
    options = BeamOptions(num_beams=len(space), max_new_tokens=3, length_penalty=penalty)
    scored = {
        ids: oracle.token(exact(small, encoded, ids), prior[0].tolist(), [True] * len(ids)) for ids in space
    }  # fmt: skip
    ranked = sorted(space, key=lambda ids: -scored[ids] / len(ids) ** penalty)
    [found] = token_level.beam(small, encoded, prior, options)
    assert {one.token_ids for one in found} == set(space)
    assert [one.token_ids for one in found[:10]] == ranked[:10]
    assert [one.logprob for one in found] == pytest.approx([scored[one.token_ids] for one in found], abs=1e-4)


def test_thorough_with_full_beams_finds_the_best_answer_of_all(small: Generator) -> None:
    size = small.config.vocab_size
    encoded, prior = question(small, seed=1, n_docs=2, vocabulary=size)
    space = oracle.all_hypotheses(size, small.eos_token_id, longest=3)
    tokens = exact_of_all(small, encoded, space)
    scored = {ids: oracle.sequence(tokens[ids], prior[0].tolist(), [True] * len(ids)) for ids in space}
    [found] = sequence_level.thorough(small, encoded, prior, BeamOptions(len(space), 3))
    assert len(found) == len(space)
    assert found[0].token_ids == max(space, key=scored.__getitem__)
    assert [one.logprob for one in found] == pytest.approx(sorted(scored.values(), reverse=True), abs=1e-4)


def test_greedy_takes_the_most_likely_token_of_the_mixture(generator: Generator) -> None:
    encoded, prior = question(generator, seed=2)
    [[found]] = token_level.beam(generator, encoded, prior, BeamOptions(1, 4))
    prefix: list[int] = []
    for token in found.token_ids:
        every = [(*prefix, candidate) for candidate in range(VOCABULARY)]
        candidates = [
            oracle.log_sum_exp([p + row[-1] for p, row in zip(prior[0].tolist(), tokens, strict=True)])
            for tokens in exact_of_all(generator, encoded, every).values()
        ]
        forced = generator.first_token_ids[len(prefix) : len(prefix) + 1]
        assert token == (forced[0] if forced else candidates.index(max(candidates)))
        prefix.append(token)
    assert found.finished == (found.token_ids[-1] == generator.eos_token_id)
    assert found.finished or len(found.token_ids) == 4


@pytest.mark.parametrize(
    ("mode", "naive"), [(token_level.beam, oracle.token), (sequence_level.thorough, oracle.sequence)]
)
def test_scores_and_posteriors_equal_the_formulas(mode, naive, generator: Generator) -> None:
    for seed in range(3):
        encoded, prior = question(generator, seed)
        [found] = mode(generator, encoded, prior, OPTIONS)
        assert len({one.token_ids for one in found}) == len(found) >= 1
        for one in found:
            tokens, mask = exact(generator, encoded, one.token_ids), [True] * len(one.token_ids)
            assert one.logprob == pytest.approx(naive(tokens, prior[0].tolist(), mask), abs=1e-4)
            posterior = [math.exp(part) for part in oracle.posterior(tokens, prior[0].tolist(), mask)]
            assert one.posterior == pytest.approx(posterior, abs=1e-4)
            assert one.cited == posterior.index(max(posterior))
            for step, row in enumerate(one.token_posterior):
                alone = [[passage[step]] for passage in tokens]
                expected = [math.exp(part) for part in oracle.posterior(alone, prior[0].tolist(), [True])]
                assert row == pytest.approx(expected, abs=1e-4)


def test_sequence_candidates_are_the_union_of_what_each_passage_proposes(generator: Generator) -> None:
    encoded, prior = question(generator, seed=4)
    union: dict[tuple[int, ...], list[float]] = {}
    for passage in range(3):
        [own] = token_level.beam(generator, encoded.select(torch.tensor([passage])), torch.zeros(1, 1), OPTIONS)
        for one in own:
            union.setdefault(one.token_ids, []).append(prior[0, passage].item() + one.logprob)
    [thorough], [fast] = (mode(generator, encoded, prior, OPTIONS) for mode in MODES[1:])
    assert {one.token_ids for one in thorough} == {one.token_ids for one in fast} == set(union)
    for one in fast:
        assert one.logprob == pytest.approx(oracle.log_sum_exp(union[one.token_ids]), abs=1e-4)
        assert sum(one.posterior) == pytest.approx(1.0, abs=1e-5)
    exact_logprob = {one.token_ids: one.logprob for one in thorough}
    assert all(one.logprob <= exact_logprob[one.token_ids] + 1e-5 for one in fast)
    assert [one.logprob for one in thorough] == sorted(exact_logprob.values(), reverse=True)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("options", [BeamOptions(1, 6), OPTIONS, replace(OPTIONS, early_stopping=True)])
def test_neighbours_in_the_batch_change_nothing(mode, options: BeamOptions, generator: Generator) -> None:
    seeds = [11, 12, 13, 14, 15]
    together = mode(generator, *batch_of(generator, seeds), options)
    assert len(together) == 5
    for seed, found in zip(seeds, together, strict=True):
        [alone] = mode(generator, *question(generator, seed), options)
        assert_same(found, alone)


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=5, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 10**6), padding=st.integers(1, 4))
def test_padding_and_masked_passages_change_nothing(mode, generator: Generator, seed: int, padding: int) -> None:
    encoded, _ = question(generator, seed, n_docs=2)
    stranger, _ = question(generator, seed + 1, n_docs=1)
    scores = torch.tensor([[0.3, -0.4, 50.0]])
    more = EncodedPassages(
        torch.nn.functional.pad(torch.cat([encoded.hidden, stranger.hidden]), (0, 0, 0, padding), value=3.0),
        torch.nn.functional.pad(
            torch.cat([encoded.attention_mask, stranger.attention_mask]), (0, padding), value=False
        ),
    )
    [expected] = mode(generator, encoded, prior_logprobs(scores[:, :2]), OPTIONS)
    [found] = mode(generator, more, prior_logprobs(scores, torch.tensor([[True, True, False]])), OPTIONS)
    assert all(one.posterior[2] == 0 for one in found)
    assert_same(tuple(one._replace(posterior=one.posterior[:2]) for one in found), expected)


@pytest.mark.parametrize("mode", MODES)
def test_order_of_passages_changes_nothing(mode, generator: Generator) -> None:
    encoded, prior = question(generator, seed=21)
    [expected] = mode(generator, encoded, prior, OPTIONS)
    [turned] = mode(generator, encoded.select(torch.tensor([2, 0, 1])), prior[:, [2, 0, 1]], OPTIONS)
    assert_same(tuple(one._replace(posterior=(*one.posterior[1:], one.posterior[0])) for one in turned), expected)


@pytest.mark.parametrize("size", [1, 40])
def test_scoring_in_parts_changes_nothing(size: int, generator: Generator, monkeypatch) -> None:
    together, priors = batch_of(generator, [23, 24])
    priors = prior_logprobs(priors, torch.tensor([[True, True, True], [False, True, True]]))
    expected = sequence_level.thorough(generator, together, priors, OPTIONS)
    monkeypatch.setattr(sequence_level, "_POSITIONS_AT_ONCE", size)
    for one, other in zip(sequence_level.thorough(generator, together, priors, OPTIONS), expected, strict=True):
        assert_same(one, other)


def test_one_passage_makes_all_modes_plain_decoding(generator: Generator) -> None:
    encoded, prior = question(generator, seed=22, n_docs=1)
    token, thorough, fast = (mode(generator, encoded, prior, OPTIONS)[0] for mode in MODES)
    assert_same(fast, thorough)
    by_logprob = tuple(sorted(token, key=lambda one: -one.logprob))
    assert_same(by_logprob, thorough)
    assert all(one.posterior == (1.0,) and one.cited == 0 for one in token)


def test_targets_begin_as_training_targets_do(tmp_path) -> None:
    bart = tiny_generator("bart", tmp_path)
    for mode in MODES:
        [found] = mode(bart, *question(bart, seed=3), OPTIONS)
        assert all(one.token_ids[0] == 0 for one in found)


@pytest.mark.parametrize("mode", MODES)
def test_limits(mode, generator: Generator) -> None:
    encoded, prior = question(generator, seed=5)
    [found] = mode(generator, encoded, prior, BeamOptions(2, 1))
    assert all(len(one.token_ids) == 1 for one in found)
    assert mode(generator, encoded.select(slice(0, 0)), prior[:0], OPTIONS) == []
    generator.train()
    try:
        with pytest.raises(ValueError, match="training mode"):
            mode(generator, encoded, prior, OPTIONS)
    finally:
        generator.eval()
    with pytest.raises(ValueError, match="num_beams is 0"):
        BeamOptions(num_beams=0)


def test_labels_follow_the_mixture_and_both_families_agree(generator: Generator) -> None:
    encoded, prior = batch_of(generator, [31, 32], n_docs=3)
    first = generator.first_token_ids
    result = labels.classify(generator, encoded, prior, {"yes": 7, "no": 9, "maybe": 12})
    for number in range(2):
        own = encoded.select(slice(3 * number, 3 * number + 3))
        by_label = [[row[-1:] for row in exact(generator, own, (*first, token))] for token in (7, 9, 12)]
        for naive in (oracle.sequence, oracle.token):
            joint = torch.tensor([naive(tokens, prior[number].tolist(), [True]) for tokens in by_label])
            torch.testing.assert_close(result.probs[number].log(), joint.log_softmax(0), rtol=0, atol=1e-4)
        for place, tokens in enumerate(by_label):
            posterior = torch.tensor(oracle.posterior(tokens, prior[number].tolist(), [True])).exp()
            torch.testing.assert_close(result.posterior_probs[number, place], posterior, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(result.probs.sum(dim=1), torch.ones(2))


def test_label_words_must_be_one_token_each(generator: Generator) -> None:
    ids = labels.label_token_ids(generator.tokenizer, {"SUPPORTS": "a", "REFUTES": "paris"})
    assert [generator.tokenizer.decode([number]) for number in ids.values()] == ["a", "paris"]
    for words, message in [
        ({"x": "a b"}, "with 2 tokens"),
        ({"x": "unheard"}, "not as one"),
        ({"x": "a", "y": "a"}, "another label"),
    ]:
        with pytest.raises(ConfigError, match=message):
            labels.label_token_ids(generator.tokenizer, words)
