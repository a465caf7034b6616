"""Attention in which several decoder rows share the keys of one encoded passage.

Beams and hypotheses of a passage all attend to the same encoder states. Repeating the keys for each of them
costs memory and, on a CPU, most of the time; here the rows of one passage are folded into the query axis
instead. Row r of the decoder belongs to passage r // (rows / passages).
"""

from typing import Any

from torch import Tensor, nn
from transformers.cache_utils import DynamicLayer
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

SHARED_KEYS = "shared_keys"


def register() -> None:
    """Make the attention known to transformers under the name ``shared_keys``; calling it again changes nothing."""
    ALL_ATTENTION_FUNCTIONS.register(SHARED_KEYS, _shared_keys_attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register(SHARED_KEYS, ALL_MASK_ATTENTION_FUNCTIONS["sdpa"])


class ReadKeys:
    """The self-attention keys of one layer: of all tokens that the rows of a passage have read, side by side.

    Rows only add to them. Which keys belong to the history of a row is said by the mask, so nothing is put in order
    or copied when a search goes on from other rows. There is room for more than is used, and ``used`` counts what was
    written: who goes on from an earlier point gets a copy, so that no writer disturbs another.
    """

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        self.keys, self.values = keys, values  # [passages heads room dim]
        self.used = keys.shape[2]

    def add(self, keys: Tensor, values: Tensor, after: int) -> "ReadKeys":
        """These with one more token of each row, [rows heads 1 dim], behind the first ``after`` keys."""
        passages = self.keys.shape[0]
        end = after + keys.shape[0] // passages
        grown = self if self.used == after and end <= self.keys.shape[2] else self._copy(after, room=2 * end)
        grown.keys[:, :, after:end] = _fold(keys, passages)
        grown.values[:, :, after:end] = _fold(values, passages)
        grown.used = end
        return grown

    def select(self, passages: Tensor, read: int) -> "ReadKeys":
        """The first ``read`` keys of the chosen passages."""
        return ReadKeys(self.keys[passages, :, :read], self.values[passages, :, :read])

    def _copy(self, read: int, room: int) -> "ReadKeys":
        passages, heads, _, dim = self.keys.shape
        copies = [each.new_empty(passages, heads, room, dim) for each in (self.keys, self.values)]
        for copy, each in zip(copies, (self.keys, self.values), strict=True):
            copy[:, :, :read] = each[:, :, :read]
        return ReadKeys(*copies)


class SharedHistory(DynamicLayer):  # type: ignore[misc]
    """``ReadKeys`` as transformers wants the cache of a layer: ``read`` keys of them, ``length`` tokens a row."""

    def __init__(self, past: ReadKeys, read: int, length: int) -> None:
        super().__init__()
        self.lazy_initialization(past.keys, past.values)
        self.past, self.read, self.length = past, read, length

    def update(self, key_states: Tensor, value_states: Tensor, *_args: Any, **_kwargs: Any) -> tuple[Tensor, Tensor]:
        """Add one token of every row; all keys that the passage's rows may look at."""
        self.past = self.past.add(key_states, value_states, self.read)
        return self.past.keys[:, :, : self.past.used], self.past.values[:, :, : self.past.used]

    def get_seq_length(self) -> int:
        """How many tokens each row has read: the position of the next."""
        return self.length


def _shared_keys_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **kwargs: Any
) -> tuple[Tensor, None]:
    rows, heads, length, dim = query.shape
    passages = key.shape[0]
    bias = kwargs.pop("position_bias", None)
    if length == 1 and bias is not None and attention_mask is not None:
        bias = _bias_of_history(bias, attention_mask)
    if rows != passages:
        query = _fold(query, passages)
        attention_mask, bias = (_fold_mask(each, rows, passages) for each in (attention_mask, bias))
    output, _ = sdpa_attention_forward(module, query, key, value, attention_mask, position_bias=bias, **kwargs)
    if rows != passages:  # [passages, rows per passage * length, heads, dim]
        output = output.reshape(rows, length, heads, dim)
    return output, None


def _fold(states: Tensor, passages: int) -> Tensor:
    """[rows heads length dim] as [passages heads (rows of the passage * length) dim]."""
    rows, heads, length, dim = states.shape
    by_passage = states.view(passages, rows // passages, heads, length, dim).transpose(1, 2)
    return by_passage.reshape(passages, heads, (rows // passages) * length, dim)


def _fold_mask(mask: Tensor | None, rows: int, passages: int) -> Tensor | None:
    """A history of every row goes with its row. Cross-attention looks alike from every position, so one of its query
    positions, and of T5's zero position bias, stands for all.
    """
    if mask is None or mask.shape[0] != rows:
        return None if mask is None else mask[:, :, :1]
    return _fold(mask, passages)


def _bias_of_history(bias: Tensor, mask: Tensor) -> Tensor:
    """T5's bias of each key by its position in the history of a row, not by its place among all keys.

    A row sees one key for each position, in order.
    """
    positions = (mask.cumsum(dim=-1) - 1).clamp(min=0).expand(-1, bias.shape[1], -1, -1)
    return bias.expand(mask.shape[0], -1, -1, -1).gather(3, positions)
