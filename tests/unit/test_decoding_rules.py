"""Minimum length and no repeated n-grams: against every possible answer, and against transformers' processors."""

import pytest
import torch
from transformers import MinNewTokensLengthLogitsProcessor, NoRepeatNGramLogitsProcessor

from rag.config import TaskConfig, read_study
from rag.decoding import rules, sequence_level, token_level
from rag.decoding.decode import decode
from rag.decoding.hypotheses import BeamOptions
from rag.errors import ConfigError
from rag.modeling.generator import EncodedPassages, Generator
from rag.modeling.inputs import GeneratorInputs
from rag.modeling.marginalize import marginalize_sequence, marginalize_token, prior_logprobs
from rag.modeling.models import RagModel
from rag.modeling.tokenizer import pad_rows
from rag.records import Question
from tests.support import oracle
from tests.support.file_map import ROOT
from tests.support.tiny_models import random_ids, random_passages, tiny_generator

VOCABULARY = 5
SPACES = [(0, 0), (2, 0), (0, 1), (0, 2), (3, 2), (1, 3)]  # min_new_tokens, no_repeat_ngram_size


@pytest.fixture(scope="module")
def generator(tmp_path_factory) -> Generator:
    return tiny_generator("flan-t5", tmp_path_factory.mktemp("t5"), seed=5, vocabulary=VOCABULARY)


@pytest.fixture(scope="module")
def bart(tmp_path_factory) -> Generator:
    return tiny_generator("bart", tmp_path_factory.mktemp("bart"), seed=5)


def passages(generator: Generator) -> tuple[EncodedPassages, torch.Tensor]:
    return random_passages(generator, 2, seed=1, vocabulary=VOCABULARY), prior_logprobs(torch.tensor([[0.4, -0.2]]))


def repeats(ids: tuple[int, ...], size: int) -> bool:
    ngrams = [ids[first : first + size] for first in range(len(ids) - size + 1)]
    return len(set(ngrams)) < len(ngrams)


def obeying(eos: int, least: int, size: int, longest: int = 4) -> list[tuple[int, ...]]:
    """Every answer that the rules leave, of all there are."""
    return [
        ids
        for ids in oracle.all_hypotheses(VOCABULARY, eos, longest)
        if not (ids[-1] == eos and len(ids) - 1 < least) and not (size and repeats(ids, size))
    ]


def loglikelihoods(generator: Generator, marginalize, space: list[tuple[int, ...]]) -> dict[tuple[int, ...], float]:
    encoded, prior = passages(generator)
    ids, mask = pad_rows(space, generator.pad_token_id)
    with torch.no_grad():
        rows = generator.token_logprobs(encoded, ids.repeat(2, 1), mask.repeat(2, 1))
    tokens = rows.view(2, *ids.shape).transpose(0, 1)
    return dict(zip(space, marginalize(tokens, prior.expand(len(ids), -1), mask).tolist(), strict=True))


@pytest.mark.parametrize(("least", "size"), SPACES)
@pytest.mark.parametrize(
    ("mode", "marginalize"),
    [(token_level.beam, marginalize_token), (sequence_level.thorough, marginalize_sequence)],
)
def test_full_width_beams_find_exactly_the_answers_that_the_rules_leave(
    mode, marginalize, least: int, size: int, generator: Generator
) -> None:
    space = obeying(generator.eos_token_id, least, size)
    scored = loglikelihoods(generator, marginalize, space)
    options = BeamOptions(
        num_beams=700, max_new_tokens=4, length_penalty=0.0, min_new_tokens=least, no_repeat_ngram_size=size
    )
    [found] = mode(generator, *passages(generator), options)
    assert {one.token_ids for one in found} == set(space)
    assert [one.logprob for one in found] == pytest.approx(sorted(scored.values(), reverse=True), abs=1e-4)


def test_repeated_ngrams_are_those_of_transformers() -> None:
    random = torch.Generator().manual_seed(0)
    for number in range(200):
        size, length = 1 + number % 4, number % 9
        tokens = torch.randint(0, 4, (3, 2, length), generator=random)
        theirs = NoRepeatNGramLogitsProcessor(size)(tokens.view(6, length), torch.zeros(6, 4))
        assert torch.equal(rules.repeating(tokens, size, 4), torch.isneginf(theirs).view(3, 2, 4))


def test_the_minimum_length_is_that_of_transformers(generator: Generator) -> None:
    for length in range(5):
        tokens, mixture = torch.zeros(1, 2, length, dtype=torch.long), torch.randn(1, 2, VOCABULARY)
        theirs = MinNewTokensLengthLogitsProcessor(0, 3, generator.eos_token_id, device="cpu")(tokens[0], mixture[0])
        assert torch.equal(rules.bar(mixture, tokens, BeamOptions(min_new_tokens=3), generator)[0], theirs)


def test_rules_that_are_off_return_the_mixture_itself(generator: Generator) -> None:
    mixture = torch.randn(1, 2, VOCABULARY)
    assert rules.bar(mixture, torch.zeros(1, 2, 1, dtype=torch.long), BeamOptions(), generator) is mixture


def test_a_forced_first_token_is_never_barred(bart: Generator) -> None:
    options = BeamOptions(2, 6, min_new_tokens=4, no_repeat_ngram_size=1)
    encoded, prior = random_passages(bart, 2, seed=1), prior_logprobs(torch.zeros(1, 2))
    for mode in (token_level.beam, sequence_level.thorough, sequence_level.fast):
        [found] = mode(bart, encoded, prior, options)
        assert found
        for one in found:
            assert one.token_ids[0] == bart.first_token_ids[0]
            assert len(one.token_ids) > 4
            assert not repeats(one.token_ids, 1)


def test_an_answer_can_end_where_nothing_else_may_follow(generator: Generator) -> None:
    options = BeamOptions(num_beams=3, max_new_tokens=9, min_new_tokens=8, no_repeat_ngram_size=1)
    [found] = token_level.beam(generator, *passages(generator), options)
    assert {len(one.token_ids) for one in found} == {VOCABULARY}  # each other token once, then the end
    assert all(one.finished for one in found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_new_tokens": 32}, "min_new_tokens is 32, max_new_tokens 32"),
        ({"min_new_tokens": -1}, "none may be negative"),
        ({"no_repeat_ngram_size": -1}, "none may be negative"),
    ],
)
def test_contradictory_options_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BeamOptions(**options)


def task(**options) -> TaskConfig:
    return TaskConfig(reader="open-qa", test="t", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.5}, "temperature is heeded with decoding = 'sample' only"),
        ({"decoding": "sample", "num_beams": 4}, "num_beams is heeded with decoding = 'beam' only"),
        ({"min_new_tokens": 40}, "leaves no room to end an answer"),
        ({"decoding": "sample", "top_p": 0.0}, "greater than 0"),
    ],
)
def test_a_task_refuses_options_that_nobody_would_heed(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        task(**options)


def named(name: str) -> Question:
    return Question(name, "open-qa", "", ())


def test_a_study_refuses_to_sample_from_rag_sequence() -> None:
    demo = ROOT / "flows" / "studies" / "demo.toml"
    with pytest.raises(
        ConfigError, match=r"tasks\.qa\.decoding = 'sample' .* models\.rag-sequence of family rag-sequence"
    ):
        read_study(demo, ("tasks.qa.decoding=sample",))


def test_the_options_of_a_task_reach_its_decoding(bart: Generator) -> None:
    ids, mask = random_ids(2, seed=4)
    inputs, prior = GeneratorInputs(ids[None], mask[None]), prior_logprobs(torch.zeros(1, 2))
    encoded = bart.encode(ids, mask)
    token, sequence = RagModel("rag-token", bart), RagModel("rag-sequence", bart)
    kept = {"num_beams": 3, "max_new_tokens": 6, "min_new_tokens": 3, "no_repeat_ngram_size": 2}
    other = {**kept, "length_penalty": -2.0, "early_stopping": True}
    for options in (kept, other):
        [expected] = token_level.beam(bart, encoded, prior, BeamOptions(**options))
        [answer] = decode(token, task(**options), inputs, prior, [named("q")])
        assert answer.hypotheses == expected
        assert answer.logprob == expected[0].logprob
        [answer] = decode(sequence, task(**options), inputs, prior, [named("q")])
        assert (answer.hypotheses,) == tuple(sequence_level.thorough(bart, encoded, prior, BeamOptions(**options)))
    drawn = task(decoding="sample", samples=20, max_new_tokens=4, temperature=2.0, sampling_seed=3)
    [one], [again], [else_named] = (decode(token, drawn, inputs, prior, [named(name)]) for name in "qqr")
    assert one == again
    assert one.hypotheses != else_named.hypotheses
    assert sum(found.draws for found in one.hypotheses) == 20
    with pytest.raises(ConfigError, match="rag-sequence"):
        decode(sequence, drawn, inputs, prior, [named("q")])
