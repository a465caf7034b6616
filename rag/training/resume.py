"""Half-done training on disk: weights, optimizer state and log, written in one step, without pickle."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from rag.modeling.checkpoint import write_weights, writing

_STATE = ".resume"  # hidden: scratch of a stage, never part of its result
_LOG = "steps.json"


def save_state(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, log: Sequence[dict[str, Any]]) -> None:
    """Keep what ``load_state`` needs to go on after the last step of ``log``; replaces what was kept before."""
    new, old = folder / f"{_STATE}.new", folder / _STATE
    _remove(new)
    named = _trained(model)
    write_weights(new / "weights.safetensors", named)
    moments = {
        f"{name}:{key}": value for name, parameter in named.items() for key, value in optimizer.state[parameter].items()
    }
    write_weights(new / "optimizer.safetensors", moments)
    with writing(new):
        (new / _LOG).write_text(json.dumps(list(log)), encoding="utf-8")  # last: without it the rest does not count
        _remove(old)
        new.rename(old)


def load_state(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    """Put kept weights and optimizer state back and return the log; an empty log where nothing was kept."""
    kept, new = folder / _STATE, folder / f"{_STATE}.new"
    if not (kept / _LOG).is_file() and (new / _LOG).is_file():  # killed between removal and renaming
        _remove(kept)
        new.rename(kept)
    if not (kept / _LOG).is_file():
        return []
    named = _trained(model)
    weights = load_file(kept / "weights.safetensors")
    with torch.no_grad():
        for name, parameter in named.items():
            parameter.copy_(weights[name])
    for key, value in load_file(kept / "optimizer.safetensors").items():
        name, _, moment = key.rpartition(":")
        optimizer.state[named[name]][moment] = value.to(named[name].device)
    log: list[dict[str, Any]] = json.loads((kept / _LOG).read_text(encoding="utf-8"))
    return log


def _remove(state: Path) -> None:
    """The log goes first: a state that is half removed must not be taken for a whole one."""
    (state / _LOG).unlink(missing_ok=True)
    shutil.rmtree(state, ignore_errors=True)


def _trained(model: nn.Module) -> dict[str, Tensor]:
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
