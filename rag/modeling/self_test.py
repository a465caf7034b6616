"""A test at load for families of generators that no comparison with transformers covers yet.

Families differ in how they call attention and their cache, and one that calls them in its own way may well run and
give wrong numbers. So an unlisted one has to prove itself with its own weights: what ``Generator`` computes must be
what the plain transformers model computes, with its own attention and each passage alone.
"""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import AutoModelForSeq2SeqLM

from rag.errors import ConfigError
from rag.modeling.checkpoint import generation_setting

if TYPE_CHECKING:
    from rag.modeling.generator import EncodedPassages, Generator

# Compared with transformers' forward and generate in tests/unit/test_generators_families.py, so not tested at load.
PROVEN = ("bart", "blenderbot", "blenderbot-small", "m2m_100", "mbart", "mt5", "pegasus", "plbart", "t5")
_LENGTHS = (3, 11, 160)  # tokens of the passages; the last is more than one block of LongT5's local attention
_TARGET_LENGTH = 5
_TOLERANCE = 1e-3  # of the spread of the log-probabilities; measured: right families at most 2e-5, wrong ones 0.02


class _Rows(NamedTuple):
    """Random passages, each with two random targets."""

    ids: Int[Tensor, "passages source_len"]
    mask: Bool[Tensor, "passages source_len"]
    targets: Int[Tensor, "two_passages target_len"]


@torch.no_grad()
def check_family(generator: "Generator", path: Path) -> None:
    """Return where the family is proven or proves itself; takes as long as scoring a few hundred tokens.

    ``generator`` is in float32. The random state stays as it is.

    Raises ConfigError, with what differs and the families that are known to work.
    """
    family = generator.config.model_type
    if family in PROVEN:
        return
    try:
        problem = _problem(generator, path)
    except Exception as error:
        stops = f"it stops with {type(error).__name__} ({' '.join(str(error).split())[:200]})"
        raise _refusal(path, family, stops) from error
    if problem:
        raise _refusal(path, family, problem)


def _refusal(path: Path, family: str, problem: str) -> ConfigError:
    return ConfigError(
        f"{path} holds a {family} model, which this generator does not run: {problem}; use another family, "
        f"of which these are known to work: {', '.join(PROVEN)}"
    )


def _problem(generator: "Generator", path: Path) -> str | None:
    if generation_setting(path, "bad_words_ids"):  # Marian's bar the pad
        return "its files bar words (bad_words_ids), and decoding here would write them"
    rows = _random_rows(generator)
    expected = _expected(generator, rows)
    bound = _TOLERANCE * float(expected.std())
    for what, found in _computed(generator, rows):
        wanted = expected if found.dim() == 3 else expected.gather(2, rows.targets[..., None])[..., 0]
        worst = float((found - wanted).abs().max())
        if not worst <= bound:  # so that NaN is a difference
            return f"{what} differ from transformers' own by up to {worst:.2g} nats"
    return None


def _random_rows(generator: "Generator") -> _Rows:
    random = torch.Generator().manual_seed(0)
    room = getattr(generator.config, "max_position_embeddings", None) or max(_LENGTHS)
    lengths = torch.tensor(_LENGTHS).clamp(max=room)
    mask = torch.arange(int(lengths.max())) < lengths[:, None]
    special = torch.tensor([generator.pad_token_id, generator.eos_token_id])
    words = torch.arange(generator.model.get_input_embeddings().weight.shape[0])
    words = words[~torch.isin(words, special)]
    ids = words[torch.randint(len(words), mask.shape, generator=random)].where(mask, generator.pad_token_id)
    targets = words[torch.randint(len(words), (2 * len(ids), _TARGET_LENGTH), generator=random)]
    return _Rows(ids, mask, targets)


def _computed(generator: "Generator", rows: _Rows) -> Iterator[tuple[str, Tensor]]:
    """The log-probabilities that this package computes, in each of its ways, with their name."""
    encoded, everything = generator.encode(rows.ids, rows.mask), torch.ones_like(rows.targets, dtype=torch.bool)
    yield "scores of given targets", generator.token_logprobs(encoded, rows.targets, everything)
    encoded = generator.with_cross_keys(encoded)
    yield "scores of given targets over kept keys", generator.token_logprobs(encoded, rows.targets, everything)
    yield "scores of tokens read one by one", _stepped(generator, encoded, rows.targets)


def _stepped(generator: "Generator", encoded: "EncodedPassages", targets: Tensor) -> Float[Tensor, "rows length vocab"]:
    """The same, token by token; the two rows of a passage change places after each, as beams do."""
    row = torch.arange(len(targets))
    logprobs, state = generator.start(encoded)
    found, state = [logprobs[row // 2]], state.select(row // 2)
    order = row
    for column in targets.T[:-1]:
        logprobs, state = generator.step(column[order], state)
        found.append(logprobs[order])
        state, order = state.select(row ^ 1), order[row ^ 1]
    return torch.stack(found, dim=1)


def _expected(generator: "Generator", rows: _Rows) -> Float[Tensor, "rows length vocab"]:
    """What the plain model says of both targets of each passage, the passage alone and without padding."""
    plain, logits = _plain(generator.model), []
    start = rows.targets.new_full((2, 1), generator.start_token_id)
    for ids, mask, targets in zip(rows.ids, rows.mask, rows.targets.view(-1, 2, _TARGET_LENGTH), strict=True):
        inputs = torch.cat([start, targets[:, :-1]], dim=1)
        logits.append(plain(input_ids=ids[mask].expand(2, -1), decoder_input_ids=inputs).logits)
    return torch.cat(logits).log_softmax(dim=-1)


def _plain(model: Any) -> Any:
    """The family as transformers builds it, around the same weights."""
    with torch.random.fork_rng(devices=[]):
        plain = AutoModelForSeq2SeqLM.from_config(
            copy.deepcopy(model.config), attn_implementation="eager", dtype=torch.float32
        )
    plain.load_state_dict(model.state_dict(), assign=True)
    return plain.eval()
