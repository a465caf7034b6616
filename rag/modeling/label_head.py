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
from safetensors.torch import load_file
from torch import Tensor, nn

from rag.errors import CheckpointError, ConfigError
from rag.modeling.checkpoint import write_weights


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

    def places(self, labels: Sequence[str]) -> list[int]:
        """The columns of some of its labels.

        >>> LabelHead(["SUPPORTS", "REFUTES"], dim=3).places(["REFUTES"])
        [1]
        """
        return [self.labels.index(label) for label in labels]

    def save(self, path: Path) -> None:
        """Write the weights as safetensors; the labels belong to the card beside them."""
        write_weights(path, self.state_dict())

    @classmethod
    def load(cls, path: Path, labels: Sequence[str], dim: int) -> "LabelHead":
        """A head of these labels for states of ``dim`` numbers, in evaluation mode.

        Raises CheckpointError where the file does not hold one.
        """
        head = cls(labels, dim)
        try:
            head.load_state_dict(load_file(path))
        except (OSError, SafetensorError, RuntimeError) as error:
            raise CheckpointError(
                f"{path} is no head of the labels {', '.join(labels)} over {dim} numbers; train the model again"
            ) from error
        return head.eval()


def require_head(head: nn.Module | None, labels: Sequence[str]) -> LabelHead:
    """The head of exactly these labels, in any order; raises ConfigError where the model has none or one of others."""
    wanted = ", ".join(labels)
    if head is None:
        raise ConfigError(
            f"classification = 'head' needs a head of {wanted}, and this model has none: train it on a task with "
            "classification = 'head', or set classification = 'token'"
        )
    found = cast(LabelHead, head)
    if sorted(found.labels) != sorted(labels):
        raise ConfigError(f"the task has the labels {wanted}, the model's head {', '.join(found.labels)}; use the same")
    return found
