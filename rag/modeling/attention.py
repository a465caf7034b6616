"""Attention in which several decoder rows share the keys of one encoded passage.

Beams and hypotheses of a passage all attend to the same encoder states. Repeating the keys for each of them
costs memory and, on a CPU, most of the time; here the rows of one passage are folded into the query axis
instead. Row r of the decoder belongs to passage r // (rows / passages).
"""

from typing import Any

from torch import Tensor, nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

SHARED_KEYS = "shared_keys"


def register() -> None:
    """Make the attention known to transformers under the name ``shared_keys``; calling it again changes nothing."""
    ALL_ATTENTION_FUNCTIONS.register(SHARED_KEYS, _shared_keys_attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register(SHARED_KEYS, ALL_MASK_ATTENTION_FUNCTIONS["sdpa"])


def _shared_keys_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **kwargs: Any
) -> tuple[Tensor, None]:
    rows, heads, length, dim = query.shape
    passages = key.shape[0]
    if rows != passages:
        query = query.view(passages, rows // passages, heads, length, dim).transpose(1, 2)
        query = query.reshape(passages, heads, (rows // passages) * length, dim)
        # Cross-attention looks alike from every position, so one query position of the mask and of T5's zero
        # position bias stands for all.
        attention_mask = None if attention_mask is None else attention_mask[:, :, :1]
        bias = kwargs.get("position_bias")
        kwargs["position_bias"] = None if bias is None else bias[:, :, :1]
    output, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)
    if rows != passages:  # [passages, rows per passage * length, heads, dim]
        output = output.reshape(rows, length, heads, dim)
    return output, None
