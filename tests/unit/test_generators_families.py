"""Every family of generators against transformers' own forward and generate, in float32 and bfloat16."""

import json
from typing import Any

import pytest
import torch
import transformers

from rag.decoding import sequence_level, token_level
from rag.decoding.hypotheses import BeamOptions
from rag.errors import CheckpointError
from rag.modeling.generator import Generator
from rag.modeling.marginalize import marginalize_token, prior_logprobs
from rag.modeling.tokenizer import GeneratorTokenizer, pad_rows
from tests.support.tiny_models import FAMILIES, random_ids, tiny_generator, write_model

DTYPES = [torch.float32, torch.bfloat16]
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")),
]


class Pair:
    """Ours and theirs with the same weights."""

    def __init__(self, kind: str, folder, dtype: torch.dtype = torch.float32, device: str = "cpu") -> None:
        self.theirs: Any = FAMILIES[kind].model(1).to(dtype).to(device)
        write_model(FAMILIES[kind].model(1), FAMILIES[kind].tokenizer(), folder)
        self.ours = Generator.load(folder, dtype).to(device)


def close(dtype: torch.dtype) -> dict[str, float]:
    return {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 0.05, "atol": 0.25}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", FAMILIES)
@torch.no_grad()
def test_token_logprobs_and_steps_equal_the_transformers_forward(kind: str, dtype, device: str, tmp_path) -> None:
    pair = Pair(kind, tmp_path, dtype, device)
    (ids, mask), (targets, target_mask) = random_ids(3, seed=1), random_ids(3, seed=2, length=4)
    ids, mask, targets, target_mask = (part.to(device) for part in (ids, mask, targets, target_mask))
    start = targets.new_full((3, 1), pair.ours.start_token_id)
    logits = pair.theirs(
        input_ids=ids, attention_mask=mask.long(), decoder_input_ids=torch.cat([start, targets[:, :-1]], dim=1)
    ).logits
    expected = logits.float().log_softmax(-1).gather(2, targets[..., None])[..., 0]
    encoded = pair.ours.encode(ids, mask)
    result = pair.ours.token_logprobs(encoded, targets, target_mask)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result, expected * target_mask, **close(dtype))
    twice = torch.arange(3, device=device).repeat_interleave(2)  # two rows a passage, as beams are
    logprobs, state = pair.ours.start(encoded)
    steps, state = [logprobs[twice]], state.select(twice)
    for column in targets[twice].T[:-1]:
        logprobs, state = pair.ours.step(column, state)
        steps.append(logprobs)
    stepped = torch.stack(steps, dim=1).gather(2, targets[twice][..., None])[..., 0]
    torch.testing.assert_close(stepped, expected[twice], **close(dtype))


@pytest.mark.parametrize(
    "options",
    [
        BeamOptions(1, 6),
        BeamOptions(3, 6),
        BeamOptions(3, 6, length_penalty=0.3, early_stopping=True, min_new_tokens=3, no_repeat_ngram_size=3),
    ],
)
@pytest.mark.parametrize("kind", FAMILIES)
@torch.no_grad()
def test_one_passage_is_the_plain_models_generate(kind: str, options: BeamOptions, tmp_path) -> None:
    pair = Pair(kind, tmp_path)
    ids, mask = random_ids(4, seed=3)
    first, everything = pair.ours.first_token_ids, list(range(pair.ours.config.vocab_size))

    def allowed(_: int, written: torch.Tensor) -> list[int]:  # their forced_bos_token_id would count the token as sure
        return list(first[len(written) - 1 : len(written)]) or everything

    theirs = pair.theirs.generate(
        input_ids=ids, attention_mask=mask.long(), do_sample=False, num_return_sequences=options.num_beams,
        decoder_start_token_id=pair.ours.start_token_id, forced_bos_token_id=None, prefix_allowed_tokens_fn=allowed,
        **vars(options),
    )  # fmt: skip
    encoded, prior = pair.ours.encode(ids, mask), prior_logprobs(torch.zeros(4, 1))
    found = token_level.beam(pair.ours, encoded, prior, options)
    assert [one.token_ids for hypotheses in found for one in hypotheses] == [ended(row, pair.ours) for row in theirs]
    by_passage = sequence_level.thorough(pair.ours, encoded, prior, options)
    assert [{one.token_ids for one in hypotheses} for hypotheses in by_passage] == [
        {one.token_ids for one in hypotheses} for hypotheses in found
    ]


def ended(row: torch.Tensor, generator: Generator) -> tuple[int, ...]:
    """What theirs wrote after the start token, with </s> and without padding."""
    ids = row.tolist()[1:]
    return tuple(ids[: ids.index(generator.eos_token_id) + 1] if generator.eos_token_id in ids else ids)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", FAMILIES)
@torch.no_grad()
def test_a_hypothesis_has_the_probability_that_teacher_forcing_gives_it(
    kind: str, dtype, device: str, tmp_path
) -> None:
    generator = tiny_generator(kind, tmp_path).to(dtype).to(device)
    encoded = generator.encode(*random_ids(4, seed=3))
    prior = prior_logprobs(torch.randn(2, 2).to(device))
    for number, found in enumerate(token_level.beam(generator, encoded, prior, BeamOptions(3, 5))):
        own = encoded.select(slice(2 * number, 2 * number + 2))
        ids, target_mask = pad_rows([one.token_ids for one in found], generator.pad_token_id)
        ids, target_mask = ids.to(device), target_mask.to(device)
        tokens = generator.token_logprobs(own, ids.repeat(2, 1), target_mask.repeat(2, 1)).view(2, *ids.shape)
        expected = marginalize_token(tokens.transpose(0, 1), prior[[number]].expand(len(ids), -1), target_mask)
        assert [one.logprob for one in found] == pytest.approx(expected.tolist(), rel=1e-3, abs=close(dtype)["atol"])


@pytest.mark.parametrize(
    ("kind", "start", "target"),
    [
        ("t5", 0, [3, 4, 1]),  # pad; a b </s>
        ("flan-t5", 0, [3, 4, 1]),
        ("mt5", 0, [3, 4, 1]),
        ("pegasus", 0, [3, 4, 1]),
        ("bart", 2, [0, 4, 5, 2]),  # </s>; <s> a b </s>
        ("mbart", 4, [6, 7, 2]),  # en_XX; a b </s>
        ("mbart-50", 2, [5, 6, 7, 2]),  # </s>; ro_RO a b </s>
        ("m2m_100", 2, [5, 6, 7, 2]),
        ("blenderbot", 1, [4, 5, 2]),  # <s>; a b </s>
    ],
)
def test_each_family_starts_and_frames_its_targets_as_it_was_trained(
    kind: str, start: int, target: list[int], tmp_path
) -> None:
    generator = tiny_generator(kind, tmp_path / "one")
    generator.save(tmp_path / "two")
    for one in (generator, Generator.load(tmp_path / "two")):
        assert one.start_token_id == start
        assert one.targets(["a b"]).ids.tolist() == [target]
        assert one.tokenizer.decode(target) == "a b"
        assert tuple(target[: len(one.first_token_ids)]) == one.first_token_ids
        assert one.tokenizer.spells("a b")


def test_what_a_model_reads_keeps_the_language_it_is_written_in(tmp_path) -> None:
    for kind, expected in [("mbart", [6, 2, 4]), ("mbart-50", [4, 6, 2])]:
        assert list(tiny_generator(kind, tmp_path / kind).tokenizer.encode(["a"])[0].ids) == expected


_PIECES = [("▁a", -1.0), ("▁b", -2.0)]
_BART = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
_PEGASUS = [("<pad>", 0.0), ("</s>", 0.0), *[(f"<unk_{number}>", 0.0) for number in range(2, 103)], ("<unk>", 0.0)]


@pytest.mark.parametrize(
    ("tokenizer", "behind"),
    [
        (lambda: transformers.T5Tokenizer(vocab=[*_BART[1:], *_PIECES]), []),
        (lambda: transformers.PegasusTokenizer(vocab=[*_PEGASUS, *_PIECES]), []),
        (lambda: transformers.MBartTokenizer(vocab=[*_BART, *_PIECES], src_lang="ro_RO"), ["ro_RO"]),
        (lambda: transformers.MBart50Tokenizer(vocab=[*_BART, *_PIECES], src_lang="ro_RO"), []),
    ],
)
def test_the_frames_that_transformers_tokenizers_write_are_understood(tokenizer, behind: list[str], tmp_path) -> None:
    theirs = tokenizer()
    theirs.save_pretrained(tmp_path)
    ours = GeneratorTokenizer.load(tmp_path, theirs.pad_token_id, theirs.eos_token_id)
    frame = theirs("a b")["input_ids"]
    assert list(ours.encode(["a b"])[0].ids) == frame
    assert ours.targets(["a b"]).ids[0].tolist() == frame[: len(frame) - len(behind)]
    assert [ours.language_token_id] == (theirs.convert_tokens_to_ids(behind) or [None])
    assert ours.decode(frame) == "a b"


@pytest.mark.parametrize("forced", [0, 5])
def test_a_first_token_that_only_an_older_config_forces_is_heeded(forced: int, tmp_path) -> None:
    write_model(FAMILIES["bart"].model(0), FAMILIES["bart"].tokenizer(), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "forced_bos_token_id": forced}))
    generator = Generator.load(tmp_path)
    generator.save(tmp_path / "again")
    assert generator.first_token_ids == Generator.load(tmp_path / "again").first_token_ids == (forced,)
    assert generator.targets(["a"]).ids.tolist() == [[forced, 4, 2]]


def test_a_damaged_generation_config_is_named(tmp_path) -> None:
    write_model(FAMILIES["bart"].model(0), FAMILIES["bart"].tokenizer(), tmp_path)
    (tmp_path / "generation_config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"generation_config\.json is damaged"):
        Generator.load(tmp_path)


def test_a_model_without_start_token_is_refused(tmp_path) -> None:
    write_model(FAMILIES["bart"].model(0), FAMILIES["bart"].tokenizer(), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "decoder_start_token_id": None}))
    with pytest.raises(CheckpointError, match="no decoder_start_token_id"):
        Generator.load(tmp_path)
