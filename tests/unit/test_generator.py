import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from rag.errors import CheckpointError, ConfigError
from rag.modeling.generator import Generator
from tests.support.tiny_models import (
    bart_tokenizer,
    hf_bart,
    hf_dpr_question_encoder,
    hf_t5,
    random_ids,
    random_passages,
    t5_tokenizer,
    tiny_generator,
    write_model,
)

KINDS = ["t5", "flan-t5", "bart"]


@pytest.fixture(params=KINDS)
def generator(request, tmp_path) -> Generator:
    return tiny_generator(request.param, tmp_path)


def all_true(ids: torch.Tensor) -> torch.Tensor:
    return torch.ones_like(ids, dtype=torch.bool)


@pytest.mark.parametrize("kind", KINDS)
def test_token_logprobs_equal_the_transformers_forward(kind: str, tmp_path) -> None:
    hf = hf_bart() if kind == "bart" else hf_t5(tied=kind == "t5")
    ids, mask = random_ids(3, seed=1)
    targets, target_mask = random_ids(3, seed=2, length=4)
    ours = tiny_generator(kind, tmp_path)
    with torch.no_grad():
        logits = hf(input_ids=ids, attention_mask=mask, labels=targets).logits
        expected = logits.log_softmax(-1).gather(2, targets[..., None])[..., 0] * target_mask
        result = ours.token_logprobs(ours.encode(ids, mask), targets, target_mask)
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)


def test_steps_with_cache_equal_teacher_forcing_for_rows_that_share_a_passage(generator: Generator) -> None:
    encoded = random_passages(generator, 3)
    targets = random_ids(6, seed=3, length=5)[0]
    with torch.no_grad():
        forced = generator.token_logprobs(encoded, targets, all_true(targets))
        logprobs, state = generator.start(encoded)
        doubled = torch.arange(3).repeat_interleave(2)
        steps, state = [logprobs[doubled]], state.select(doubled)
        for column in targets.T[:-1]:
            logprobs, state = generator.step(column, state)
            steps.append(logprobs)
    stepped = torch.stack(steps, dim=1).gather(2, targets[..., None])[..., 0]
    torch.testing.assert_close(stepped, forced, rtol=1e-4, atol=1e-5)


def test_shared_keys_equal_repeated_passages(generator: Generator) -> None:
    encoded = random_passages(generator, 2)
    targets = random_ids(6, seed=3, length=5)[0]
    with torch.no_grad():
        repeated = encoded.select(torch.arange(2).repeat_interleave(3))
        expected = generator.token_logprobs(repeated, targets, all_true(targets))
        shared = generator.token_logprobs(encoded, targets, all_true(targets))
        cached = generator.token_logprobs(generator.with_cross_keys(encoded), targets, all_true(targets))
    torch.testing.assert_close(shared, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(cached, expected, rtol=1e-5, atol=1e-5)


def test_reordered_rows_carry_their_history(generator: Generator) -> None:
    encoded = random_passages(generator, 1)
    with torch.no_grad():
        _, state = generator.start(encoded)
        step = generator.step(torch.tensor([5, 6]), state.select(torch.tensor([0, 0])))
        swapped = generator.step(torch.tensor([7, 7]), step.state.select(torch.tensor([1, 0])))
        straight = generator.step(torch.tensor([7, 7]), step.state)
    torch.testing.assert_close(swapped.logprobs.flip(0), straight.logprobs)


def test_rows_that_are_dropped_leave_the_history_of_the_others(generator: Generator) -> None:
    encoded = random_passages(generator, 3)
    targets = random_ids(3, seed=3, length=4)[0]
    with torch.no_grad():
        forced = generator.token_logprobs(encoded, targets, all_true(targets))
        _, state = generator.start(encoded)
        both = torch.stack([targets[:, 0].flip(0), targets[:, 0]], dim=1).flatten()
        _, state = generator.step(both, state.select(torch.arange(3).repeat_interleave(2)))
        _, state = generator.step(targets[:, 1], state.select(torch.tensor([1, 3, 5])))
        logprobs, _ = generator.step(targets[1:, 2], state.keep(torch.tensor([1, 2]), torch.tensor([1, 2])))
    torch.testing.assert_close(logprobs.gather(1, targets[1:, 3:])[:, 0], forced[1:, 3], rtol=1e-4, atol=1e-5)


def test_two_ways_on_from_one_state_do_not_disturb_each_other(generator: Generator) -> None:
    encoded = random_passages(generator, 2)
    one, other = torch.tensor([5, 6]), torch.tensor([9, 7])
    with torch.no_grad():
        _, state = generator.step(one, generator.start(encoded).state)
        ahead = [generator.step(tokens, state).state for tokens in (one, other)]
        found = [generator.step(one, each).logprobs for each in (*ahead, ahead[0])]
        _, again = generator.step(one, generator.start(encoded).state)
        expected = [generator.step(one, generator.step(tokens, again).state).logprobs for tokens in (one, other, one)]
    torch.testing.assert_close(found, expected)


def test_padding_of_passages_and_targets_changes_nothing(generator: Generator) -> None:
    ids, mask = random_ids(3, seed=1)
    targets, target_mask = random_ids(3, seed=2, length=4)
    wide = torch.nn.functional.pad(ids, (0, 5), value=9), torch.nn.functional.pad(mask, (0, 5), value=False)
    with torch.no_grad():
        expected = generator.token_logprobs(generator.encode(ids, mask), targets, target_mask)
        padded = generator.token_logprobs(
            generator.encode(*wide), torch.nn.functional.pad(targets, (0, 2), value=9),
            torch.nn.functional.pad(target_mask, (0, 2), value=False),
        )  # fmt: skip
    torch.testing.assert_close(padded[:, :4], expected, rtol=1e-5, atol=1e-5)
    assert padded[:, 4:].eq(0).all()


def test_targets_are_framed_as_the_tokenizer_does_and_padding_is_never_scored(tmp_path) -> None:
    t5, bart = tiny_generator("t5", tmp_path / "t5"), tiny_generator("bart", tmp_path / "bart")
    ids, mask = t5.targets(["a b", "c", ""])
    assert ids.tolist() == [[3, 4, 1], [5, 1, 0], [1, 0, 0]]
    assert mask.tolist() == [[True, True, True], [True, True, False], [True, False, False]]
    assert bart.targets(["a"]).ids.tolist() == [[0, 4, 2]]
    assert (t5.first_token_ids, bart.first_token_ids) == ((), (0,))


def test_special_tokens_in_a_text_are_plain_characters(generator: Generator) -> None:
    ids = generator.targets(["a </s> <pad> b"]).ids[0].tolist()
    assert ids.count(generator.eos_token_id) == 1
    assert generator.pad_token_id not in ids


def test_an_unknown_letter_stays_visible(generator: Generator) -> None:
    ids = generator.targets(["a João b"]).ids[0].tolist()
    assert generator.tokenizer.decode(ids) == "a <unk> b"
    assert not generator.tokenizer.spells("João")
    assert generator.tokenizer.spells("a b")


@pytest.mark.parametrize("kind", KINDS)
def test_loaded_weights_equal_the_file_and_the_head_is_tied_only_where_the_file_ties_it(kind: str, tmp_path) -> None:
    generator = tiny_generator(kind, tmp_path)
    stored = load_file(tmp_path / "model.safetensors")
    loaded = generator.model.state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in stored.items())
    head, embedding = generator.model.get_output_embeddings().weight, generator.model.get_input_embeddings().weight
    assert (head is embedding) == (kind != "flan-t5")
    assert ("lm_head.weight" in stored) == (kind == "flan-t5")


def test_save_and_load_give_the_same_outputs_and_bytes(generator: Generator, tmp_path) -> None:
    generator.save(tmp_path / "one")
    again = Generator.load(tmp_path / "one")
    again.save(tmp_path / "two")
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    targets = random_ids(2, seed=4)[0]
    with torch.no_grad():
        outputs = [g.token_logprobs(random_passages(g, 2), targets, all_true(targets)) for g in (generator, again)]
    assert torch.equal(*outputs)


def test_bfloat16_weights_give_float32_logprobs(tmp_path) -> None:
    write_model(hf_bart(), bart_tokenizer(), tmp_path)
    half, full = Generator.load(tmp_path, torch.bfloat16), Generator.load(tmp_path)
    targets = random_ids(2, seed=4)[0]
    with torch.no_grad():
        results = [g.token_logprobs(random_passages(g, 2), targets, all_true(targets)) for g in (half, full)]
    assert results[0].dtype == torch.float32
    torch.testing.assert_close(*results, rtol=0.1, atol=0.5)


def test_loading_leaves_the_random_state_alone(tmp_path) -> None:
    write_model(hf_t5(), t5_tokenizer(), tmp_path)
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    Generator.load(tmp_path)
    assert torch.rand(1) == expected


def test_encoding_in_groups_of_like_length_equals_each_row_alone(generator: Generator) -> None:
    ids, mask = random_ids(19, seed=6, length=12)
    with torch.no_grad():
        together = generator.encode(ids, mask).hidden
        for row in range(19):
            alone = generator.encode(ids[row : row + 1], mask[row : row + 1]).hidden
            torch.testing.assert_close(together[row][mask[row]], alone[0][mask[row]], rtol=1e-4, atol=1e-5)


def test_a_missing_folder_is_a_configuration_error(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"no generator at .*nowhere"):
        Generator.load(tmp_path / "nowhere")


def test_a_folder_without_tokenizer_is_refused(tmp_path) -> None:
    write_model(hf_bart(), bart_tokenizer(), tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match=r"has no tokenizer\.json"):
        Generator.load(tmp_path)


def test_a_tokenizer_of_another_model_is_refused(tmp_path) -> None:
    write_model(hf_bart(), t5_tokenizer(), tmp_path)
    with pytest.raises(CheckpointError, match="instead of the generator's eos_token_id 2"):
        Generator.load(tmp_path)


def test_an_encoder_is_no_generator(tmp_path) -> None:
    write_model(hf_dpr_question_encoder(), bart_tokenizer(), tmp_path)
    with pytest.raises(ConfigError, match="holds a dpr model; the generator must be an encoder-decoder"):
        Generator.load(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("damage", ["cut", "garbage", "empty"])
def test_a_damaged_file_is_named_in_one_line(name: str, damage: str, tmp_path) -> None:
    file = write_model(hf_bart(), bart_tokenizer(), tmp_path) / name
    whole = file.read_bytes()
    file.write_bytes({"cut": whole[: len(whole) // 2], "garbage": b"version https://git-lfs", "empty": b""}[damage])
    with pytest.raises(CheckpointError, match=name) as caught:
        Generator.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_missing_unknown_and_misshapen_tensors_are_named(tmp_path) -> None:
    write_model(hf_t5(), t5_tokenizer(), tmp_path)
    whole = load_file(tmp_path / "model.safetensors")
    lacking = dict(whole)
    lacking.pop("decoder.final_layer_norm.weight")
    unknown = {**whole, "decoder.extra": torch.zeros(1)}
    misshapen = {**whole, "decoder.final_layer_norm.weight": torch.zeros(3)}
    for tensors, message in [
        (lacking, r"lacks decoder\.final_layer_norm\.weight"),
        (unknown, r"unknown tensor decoder\.extra"),
        (misshapen, "weights do not fit config"),
    ]:
        save_file(tensors, tmp_path / "model.safetensors")
        with pytest.raises(CheckpointError, match=message) as caught:
            Generator.load(tmp_path)
        assert "\n" not in str(caught.value)


def test_sharded_weights_load_and_cannot_leave_the_folder(tmp_path) -> None:
    write_model(hf_t5(tied=False), t5_tokenizer(), tmp_path)
    whole = load_file(tmp_path / "model.safetensors")
    expected = Generator.load(tmp_path).model.state_dict()
    names = sorted(whole)
    (tmp_path / "model.safetensors").unlink()
    weight_map = {name: f"part-{number % 2}.safetensors" for number, name in enumerate(names)}
    for part in set(weight_map.values()):
        save_file({name: whole[name] for name in names if weight_map[name] == part}, tmp_path / part)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    loaded = Generator.load(tmp_path).model.state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in expected.items())
    index.write_text(json.dumps({"weight_map": {"shared.weight": "../part-0.safetensors"}}))
    with pytest.raises(CheckpointError, match="safetensors"):
        Generator.load(tmp_path)
