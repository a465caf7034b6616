"""Sampling: frequencies against exact probabilities, cuts against transformers' warpers, and neighbours."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from rag.config import TaskConfig
from rag.decoding.hypotheses import Hypotheses, SampleOptions
from rag.decoding.sampling import narrow, pick, sample
from rag.modeling.generator import EncodedPassages, Generator
from rag.modeling.marginalize import marginalize_token, posterior_logprobs, prior_logprobs
from rag.modeling.models import Family
from rag.modeling.tokenizer import pad_rows
from rag.pipeline import answer_questions
from rag.records import Question
from tests.support import oracle
from tests.support.tiny_models import random_passages, tiny_generator
from tests.support.tiny_rag import tiny_rag

VOCABULARY = 5
DRAWS = 1500


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Generator:
    generator = tiny_generator("flan-t5", tmp_path_factory.mktemp("small"), seed=5, vocabulary=VOCABULARY)
    generator.model.lm_head.weight.data.mul_(0.3)  # so that many answers are likely
    return generator


@pytest.fixture(scope="module", params=["t5", "bart"])
def generator(request, tmp_path_factory) -> Generator:
    return tiny_generator(request.param, tmp_path_factory.mktemp(request.param), seed=3)


def passages(generator: Generator, seed: int = 1, n_docs: int = 2) -> tuple[EncodedPassages, torch.Tensor]:
    scores = torch.randn(1, n_docs, generator=torch.Generator().manual_seed(seed))
    return random_passages(generator, n_docs, seed, generator.config.vocab_size), prior_logprobs(scores)


def mixtures(
    generator: Generator, encoded: EncodedPassages, prior: torch.Tensor, prefixes: list[tuple[int, ...]]
) -> dict[tuple[int, ...], torch.Tensor]:
    """p(y_t|x,y_<t) of every next token after each prefix, by teacher forcing."""
    vocabulary, n_docs = generator.config.vocab_size, prior.shape[1]
    ids, mask = pad_rows([(*prefix, token) for prefix in prefixes for token in range(vocabulary)], 0)
    with torch.no_grad():
        rows = generator.token_logprobs(encoded, ids.repeat(n_docs, 1), mask.repeat(n_docs, 1)).view(n_docs, *ids.shape)
    last = rows.gather(2, (mask.sum(1) - 1)[None, :, None].expand(n_docs, -1, -1))[..., 0]
    logprobs = torch.logsumexp(prior[0, :, None] + last, dim=0).view(len(prefixes), vocabulary)
    return dict(zip(prefixes, logprobs, strict=True))


@pytest.mark.parametrize(
    "options",
    [
        SampleOptions(DRAWS, 2),
        SampleOptions(DRAWS, 2, temperature=0.6, top_k=3),
        SampleOptions(DRAWS, 2, temperature=1.7, top_p=0.8),
        SampleOptions(DRAWS, 2, min_new_tokens=1, no_repeat_ngram_size=1),
    ],
)
def test_frequencies_are_the_probabilities_of_the_cut_mixture(options: SampleOptions, small: Generator) -> None:
    encoded, prior = passages(small)
    space = oracle.all_hypotheses(VOCABULARY, small.eos_token_id, longest=2)
    logprobs = mixtures(small, encoded, prior, list({ids[:step] for ids in space for step in range(len(ids))}))

    def probability(ids: tuple[int, ...]) -> float:
        result = 1.0
        for step, token in enumerate(ids):
            scores = logprobs[ids[:step]].clone()
            if step < options.min_new_tokens:
                scores[small.eos_token_id] = -torch.inf
            if options.no_repeat_ngram_size:
                scores[list(ids[:step])] = -torch.inf
            result *= narrow(scores[None, None], options).softmax(-1)[0, 0, token].item()
        return result

    expected = {ids: probability(ids) for ids in space}
    [found] = sample(small, encoded, prior, [7], options)
    counts = {one.token_ids: one.draws for one in found}
    assert sum(counts.values()) == DRAWS
    assert all(expected[ids] > 0 for ids in counts)
    likely = [ids for ids in space if expected[ids] * DRAWS >= 5]
    observed = [counts.get(ids, 0) for ids in likely]
    rest = 1 - sum(expected[ids] for ids in likely)
    assert len(likely) >= 4
    wanted = [expected[ids] * DRAWS for ids in likely]
    if rest * DRAWS > 1:
        observed, wanted = [*observed, DRAWS - sum(observed)], [*wanted, rest * DRAWS]
    scale = sum(observed) / sum(wanted)
    assert chisquare(observed, [value * scale for value in wanted]).pvalue > 0.001


def test_hypotheses_carry_the_models_own_probability_and_posterior(generator: Generator) -> None:
    encoded, prior = passages(generator)
    [found] = sample(generator, encoded, prior, [1], SampleOptions(30, 4, temperature=0.7, top_k=9))
    ids, mask = pad_rows([one.token_ids for one in found], 0)
    with torch.no_grad():
        rows = generator.token_logprobs(encoded, ids.repeat(2, 1), mask.repeat(2, 1)).view(2, *ids.shape)
    tokens, priors = rows.transpose(0, 1), prior.expand(len(ids), -1)
    assert [one.logprob for one in found] == pytest.approx(marginalize_token(tokens, priors, mask).tolist(), abs=1e-4)
    expected = posterior_logprobs(tokens, priors, mask).exp()
    torch.testing.assert_close(torch.tensor([one.posterior for one in found]), expected, rtol=1e-4, atol=1e-4)
    assert [one.logprob for one in found] == sorted((one.logprob for one in found), reverse=True)
    assert len({one.token_ids for one in found}) == len(found) <= 30
    for one in found:
        assert one.token_ids[: len(generator.first_token_ids)] == generator.first_token_ids
        assert one.finished == (one.token_ids[-1] == generator.eos_token_id)
        assert generator.eos_token_id not in one.token_ids[:-1]
        assert len(one.token_posterior) == len(one.token_ids)
        assert len(one.token_ids) <= 4


def test_cuts_are_those_of_transformers() -> None:
    torch.manual_seed(0)
    for number in range(200):
        logits = torch.randn(3, 12) * (1 + number % 4)
        temperature, top_k, top_p = 0.4 + (number % 7) / 3, number % 12, 1 - (number % 10) / 10
        theirs = TemperatureLogitsWarper(temperature)(None, logits)
        theirs = TopKLogitsWarper(top_k)(None, theirs) if top_k else theirs
        theirs = TopPLogitsWarper(top_p)(None, theirs) if top_p < 1 else theirs
        ours = narrow(logits[None], SampleOptions(temperature=temperature, top_k=top_k, top_p=top_p))[0]
        torch.testing.assert_close(ours.softmax(-1), theirs.softmax(-1))


def assert_same(ours: Hypotheses, theirs: Hypotheses) -> None:
    assert [(one.token_ids, one.draws) for one in ours] == [(one.token_ids, one.draws) for one in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-4)
        assert one.posterior == pytest.approx(other.posterior, abs=1e-4)


@settings(max_examples=8, deadline=None, derandomize=True, database=None)
@given(seeds=st.lists(st.integers(0, 10**6), min_size=2, max_size=4, unique=True), padding=st.integers(0, 3))
def test_batch_neighbours_and_padding_change_nothing(seeds: list[int], padding: int, generator: Generator) -> None:
    options = SampleOptions(5, 5, temperature=1.5)
    parts = [passages(generator, seed) for seed in seeds]
    together = EncodedPassages(
        torch.nn.functional.pad(torch.cat([part.hidden for part, _ in parts]), (0, 0, 0, padding), value=3.0),
        torch.nn.functional.pad(torch.cat([part.attention_mask for part, _ in parts]), (0, padding), value=False),
    )
    found = sample(generator, together, torch.cat([prior for _, prior in parts]), seeds, options)
    for (encoded, prior), seed, ours in zip(parts, seeds, found, strict=True):
        [alone] = sample(generator, encoded, prior, [seed], options)
        assert_same(ours, alone)


def test_more_samples_are_the_fewer_and_others(generator: Generator) -> None:
    encoded, prior = passages(generator)
    [few], [many] = (sample(generator, encoded, prior, [5], SampleOptions(count, 3, 2.0)) for count in (10, 150))
    draws = {one.token_ids: one.draws for one in many}
    assert sum(draws.values()) == 150
    assert all(one.draws <= draws[one.token_ids] for one in few)


def test_a_masked_passage_changes_nothing(generator: Generator) -> None:
    encoded, prior = passages(generator)
    stranger, _ = passages(generator, seed=2, n_docs=1)
    more = EncodedPassages(
        torch.cat([encoded.hidden, stranger.hidden]), torch.cat([encoded.attention_mask, stranger.attention_mask])
    )
    [expected] = sample(generator, encoded, prior, [5], SampleOptions(9, 5))
    [found] = sample(generator, more, torch.cat([prior, torch.tensor([[-math.inf]])], dim=1), [5], SampleOptions(9, 5))
    assert_same(tuple(one._replace(posterior=one.posterior[:2]) for one in found), expected)
    assert all(one.posterior[2] == 0 for one in found)


@pytest.mark.parametrize("family", ["rag-token", "closed-book"])
def test_the_main_path_gives_the_most_probable_sample_whatever_the_batch(family: Family, tmp_path) -> None:
    rag = tiny_rag(tmp_path, family)
    task = TaskConfig(reader="open-qa", test="t", decoding="sample", samples=4, max_new_tokens=4, temperature=3.0)
    questions = [Question(f"q{number}", "open-qa", text, ("x",)) for number, text in enumerate(["a b", "lima", "king"])]
    together, alone = (list(answer_questions(rag, task, questions, batch_size=size)) for size in (3, 1))
    assert [one.text for one in together] == [one.text for one in alone]
    assert [one.logprob for one in together] == pytest.approx([one.logprob for one in alone], abs=1e-4)
    for one in together:
        assert 1 <= len(one.candidates) <= 4
        assert (one.text, one.logprob) == one.candidates[0]
        assert one.logprob == max(other.logprob for other in one.candidates)
    other = task.model_copy(update={"sampling_seed": 1})
    assert [one.candidates for one in answer_questions(rag, other, questions)] != [one.candidates for one in together]


def test_limits(generator: Generator) -> None:
    encoded, prior = passages(generator)
    assert sample(generator, encoded.select(slice(0, 0)), prior[:0], []) == []
    [found] = sample(generator, *passages(generator, n_docs=1), [1], SampleOptions(3, 5))
    assert all(one.posterior == (1.0,) for one in found)
    generator.train()
    try:
        with pytest.raises(ValueError, match="training mode"):
            sample(generator, encoded, prior, [1])
    finally:
        generator.eval()


@pytest.mark.parametrize(
    "options", [{"samples": 0}, {"temperature": 0.0}, {"top_k": -1}, {"top_p": 0.0}, {"top_p": 1.1}]
)
def test_options_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        SampleOptions(**options)


@pytest.mark.parametrize("temperature", [1e-3, 1e-20, 5e-324])
def test_near_a_temperature_of_0_the_most_probable_token_is_drawn(temperature: float) -> None:
    scores = torch.tensor([[[0.4, 0.0, 0.6]] * 3]).log()
    numbers = torch.tensor([[0.001, 0.5, 0.999]], dtype=torch.float64)
    for options in (SampleOptions(temperature=temperature), SampleOptions(temperature=temperature, top_p=0.5)):
        assert pick(narrow(scores, options), numbers).tolist() == [[2, 2, 2]]
