"""A linear head that classifies a claim from the decoder's last state, as BART does it (appendix E of the paper).

The decoder reads the claim itself, as if it wrote it again under each passage; the head looks at the state behind its
last token. Classes are marginalised over passages like a target of one token, so both families agree.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from rag.errors import CheckpointError, ConfigError


class LabelHead(nn.Module):
    """log p(label|x,z) from decoder states; before training, all labels are equally likely.

    Zeros are no obstacle to learning in a single linear layer, and need no seed.

    >>> LabelHead(["SUPPORTS", "REFUTES"], dim=3)(torch.ones(1, 3)).exp().tolist()
    [[0.5, 0.5]]
    """

    def __init__(self, labels: Sequence[str], dim: int) -> None:
        super().__init__()
        self.labels = tuple(labels)
        self.linear = nn.Linear(dim, len(self.labels))
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, states: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows labels"]:
        logits: Tensor = self.linear(states)
        logits = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
        return torch.log_softmax(logits, dim=-1)

    def save(self, path: Path) -> None:
        """Write the weights as safetensors; the labels belong to the card beside them."""
        save_file({name: tensor.detach().contiguous() for name, tensor in self.state_dict().items()}, path)

    @classmethod
    def load(cls, path: Path, labels: Sequence[str]) -> "LabelHead":
        """A head of these labels, in evaluation mode; raises CheckpointError where the file is not one of them."""
        try:
            weights = load_file(path)
            head = cls(labels, weights["linear.weight"].shape[1])
            head.load_state_dict(weights)
        except (OSError, SafetensorError, KeyError, IndexError, RuntimeError) as error:
            raise CheckpointError(
                f"{path} is no head of the labels {', '.join(labels)}; train the model again"
            ) from error
        return head.eval()


def require_head(head: nn.Module | None, labels: Sequence[str]) -> LabelHead:
    """The head of exactly these labels; raises ConfigError where the model has none or one of others."""
    wanted = ", ".join(labels)
    if head is None:
        raise ConfigError(
            f"classification = 'head' needs a head of {wanted}, and this model has none: train it on a task with "
            "classification = 'head', or set classification = 'token'"
        )
    found = cast(LabelHead, head)
    if found.labels != tuple(labels):
        raise ConfigError(f"the task has the labels {wanted}, the model's head {', '.join(found.labels)}; use the same")
    return found
