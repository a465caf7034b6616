"""Read and write the weights of a generator: safetensors only, every tensor accounted for, no network."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForSeq2SeqLM
from transformers.activations import NewGELUActivation

from rag.errors import CheckpointError, ConfigError, ResourceError
from rag.files import publish, write_atomically
from rag.modeling import attention

_GENERATION_CONFIG = "generation_config.json"


def load_seq2seq(path: Path) -> Any:
    """A transformers encoder-decoder from a local folder, in float32 and evaluation mode.

    The file decides whether the output head is tied: transformers ties T5's at construction whatever the
    checkpoint holds, so a FLAN-T5 would load as another, wrong model.

    Raises ConfigError for a folder that is missing or of no encoder-decoder, CheckpointError for damage.
    """
    config = _read_config(path)
    state = read_weights(path)
    attention.register()
    with torch.random.fork_rng(devices=[]):  # the weights it draws are thrown away; the caller's seed must not move
        model = AutoModelForSeq2SeqLM.from_config(
            config, attn_implementation=attention.SHARED_KEYS, dtype=torch.float32
        )
    _untie_if_the_file_does(model, state)
    _fuse_gelu(model)
    _load(model, state, path)
    forced = generation_setting(path, "forced_bos_token_id")  # the first token that the model is made to write
    model.generation_config.forced_bos_token_id = None if forced is None else int(forced)
    return model.eval()


def save_seq2seq(model: Any, path: Path) -> None:
    """Write config.json and model.safetensors; a tensor with two names is stored once, under the first."""
    path.mkdir(parents=True, exist_ok=True)
    seen: set[tuple[int, torch.Size]] = set()
    state: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        key = (tensor.data_ptr(), tensor.shape)
        if key not in seen:
            seen.add(key)
            state[name] = tensor
    write_atomically(path / "config.json", model.config.to_json_string().encode())
    if model.generation_config.forced_bos_token_id is not None:
        write_atomically(path / _GENERATION_CONFIG, model.generation_config.to_json_string().encode())
    write_weights(path / "model.safetensors", state)


def write_weights(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a safetensors file that is whole or absent. Raises ResourceError where the disk does not take it."""
    temporary = path.with_name(f".{path.name}.tmp")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
            save_file(whole, temporary, metadata={"format": "pt"})
            publish(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Raises ResourceError, in words, where what is done under it cannot write below ``place``."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise ResourceError(
            f"{place} cannot be written ({_first_line(error)}); make room on its disk or name another place"
        ) from error


def _read_config(path: Path) -> Any:
    if not path.is_dir():
        raise ConfigError(f"no generator at {path}: give a folder with config.json, model.safetensors, tokenizer.json")
    try:
        config = AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # of many kinds, some of transformers' own
        raise CheckpointError(f"{path / 'config.json'} is missing or damaged: {_first_line(error)}") from error
    if not config.is_encoder_decoder or type(config) not in AutoModelForSeq2SeqLM._model_mapping:
        raise ConfigError(f"{path} holds a {config.model_type} model; the generator must be an encoder-decoder")
    for name in ("pad_token_id", "eos_token_id"):
        if getattr(config, name, None) is None:
            raise CheckpointError(f"{path / 'config.json'} has no {name}; decoding cannot start or end without it")
    config.name_or_path = ""  # else the folder's path would be written into every copy
    return config


def generation_setting(path: Path, setting: str) -> Any:
    """What the model's own files say of how it writes; None where they say nothing.

    transformers 5 drops such settings from config.json in silence, and older checkpoints have them nowhere else.
    """
    for name in (_GENERATION_CONFIG, "config.json"):
        file = path / name
        try:
            found = json.loads(file.read_bytes()).get(setting) if file.is_file() else None
        except (ValueError, AttributeError) as error:
            raise CheckpointError(f"{file} is damaged ({_first_line(error)}); copy it again") from error
        if found is not None:
            return found
    return None


def read_weights(path: Path) -> dict[str, Tensor]:
    """All tensors of model.safetensors, or of the shards that its index names."""
    index = path / "model.safetensors.index.json"
    try:
        shards = set(json.loads(index.read_bytes())["weight_map"].values()) if index.is_file() else ()
        names = sorted(map(Path, shards))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise CheckpointError(f"{index} is damaged ({_first_line(error)}); copy it again") from error
    state: dict[str, Tensor] = {}
    for name in names or [Path("model.safetensors")]:
        file = path / name
        if name.name != str(name) or not file.is_file():  # a file may itself be a link, as in the hub's cache
            raise CheckpointError(f"{path} has no {name}; weights are read from safetensors files only")
        try:
            state |= load_file(file)
        except (SafetensorError, OSError, ValueError) as error:
            raise CheckpointError(f"{file} is damaged ({_first_line(error)}); copy it again") from error
    return state


def _fuse_gelu(model: nn.Module) -> None:
    """FLAN-T5's GELU in one pass instead of six over the widest tensors; the same function (tanh form)."""
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, NewGELUActivation):
                setattr(module, name, nn.GELU(approximate="tanh"))


def _untie_if_the_file_does(model: Any, state: dict[str, Tensor]) -> None:
    head, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    if head.weight is not embedding.weight:
        return
    names = [name for name, tensor in model.state_dict().items() if tensor.data_ptr() == head.weight.data_ptr()]
    present = [state[name] for name in names if name in state]
    if any(not torch.equal(present[0], other) for other in present[1:]):
        head.weight = nn.Parameter(head.weight.detach().clone())


def _load(model: Any, state: dict[str, Tensor], path: Path) -> None:
    try:
        result = model.load_state_dict(state, strict=False)
    except RuntimeError as error:
        raise CheckpointError(f"{path}: weights do not fit config.json: {_second_line(error)}") from error
    loaded = {tensor.data_ptr() for name, tensor in model.state_dict().items() if name in state}
    absent = [
        name
        for name in _not_ignored(result.missing_keys, model._keys_to_ignore_on_load_missing)
        if model.state_dict()[name].data_ptr() not in loaded
    ]
    unknown = _not_ignored(result.unexpected_keys, model._keys_to_ignore_on_load_unexpected)
    if absent or unknown:
        what = f"lacks {absent[0]}" if absent else f"has an unknown tensor {unknown[0]}"
        more = len(absent) + len(unknown) - 1
        raise CheckpointError(f"{path}: the weights file {what} and {more} more problems; it belongs to another model")
    wrong = [name for name, tensor in model.state_dict().items() if name in state and not _equal(tensor, state[name])]
    if wrong:
        if any(state[name].isnan().any() for name in wrong):
            raise CheckpointError(f"{path}: {wrong[0]} holds values that are not numbers; its training broke them")
        raise CheckpointError(f"{path}: {wrong[0]} differs from the file after loading; its tying is not supported")


def _equal(loaded: Tensor, stored: Tensor) -> bool:
    return torch.equal(loaded, stored.to(loaded.dtype))


def _not_ignored(names: list[str], patterns: Any) -> list[str]:
    return [name for name in names if not any(re.search(pattern, name) for pattern in patterns or ())]


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _second_line(error: BaseException) -> str:
    return " ".join(str(error).split("\n", 2)[1:2]).strip() or _first_line(error)
