"""Classification, as for FEVER, by single label tokens or by a head: where RAG-Sequence and RAG-Token are the same.

Section 3.4 of the paper maps each class to one output token. Only that token is scored: with the end of
sequence as a second one, the two families would part again. Appendix E has a head instead.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from rag.errors import ConfigError
from rag.modeling.generator import EncodedPassages, Generator
from rag.modeling.label_head import require_head
from rag.modeling.models import RagModel
from rag.modeling.tokenizer import GeneratorTokenizer


class LabelScores(NamedTuple):
    """For each question: p(label|x) among the given labels, and who says so."""

    probs: Float[Tensor, "batch labels"]  # sum to 1
    posterior_probs: Float[Tensor, "batch labels n_docs"]  # p(z|x,label)


def label_token_ids(tokenizer: GeneratorTokenizer, labels: Mapping[str, str]) -> dict[str, int]:
    """The token of each label's word, in the order given.

    Raises ConfigError where a word is not exactly one known token, or two labels share one.
    """
    ids: dict[str, int] = {}
    for label, word in labels.items():
        target = tokenizer.targets([word]).ids[0].tolist()
        tokens = target[len(tokenizer.first_token_ids) : -1]
        if len(tokens) != 1 or not tokenizer.spells(word):
            raise ConfigError(
                f"label {label!r}: the generator writes {word!r} with {len(tokens)} tokens, not as one of its own; "
                "choose another word"
            )
        if tokens[0] in ids.values():
            raise ConfigError(f"label {label!r}: the word {word!r} stands for another label too; choose another word")
        ids[label] = tokens[0]
    return ids


@torch.inference_mode()
def classify(
    generator: Generator,
    encoded: EncodedPassages,
    prior_logprobs: Float[Tensor, "batch n_docs"],
    token_ids: Mapping[str, int],
) -> LabelScores:
    """p(label|x) = sum_z p(z|x) p(label token|x,z), normalised over the labels, in their order.

    What every target begins with (BART's <s>) is given, not scored.
    """
    if generator.training:
        raise ValueError("the generator is in training mode, where dropout makes labels random; call eval() first")
    logprobs, state = generator.start(encoded)
    for token in generator.first_token_ids:
        given = torch.full((logprobs.shape[0],), token, device=logprobs.device)
        logprobs, state = generator.step(given, state)
    chosen = logprobs[:, list(token_ids.values())].view(*prior_logprobs.shape, len(token_ids)).transpose(1, 2)
    return _marginalized(prior_logprobs, chosen)


@torch.inference_mode()
def classify_by_head(
    model: RagModel,
    encoded: EncodedPassages,
    prior_logprobs: Float[Tensor, "batch n_docs"],
    claims: Sequence[str],
    labels: Sequence[str],
) -> LabelScores:
    """p(label|x) = sum_z p(z|x) p(label|x,z) by the head of the model, which knows these labels, in their order.

    Source: appendix E of the paper. Raises ConfigError for a model without such a head.
    """
    places = require_head(model.head, labels).places(labels)
    by_passage = model.label_logprobs(encoded, model.generator.targets(list(claims)))[..., places]
    return _marginalized(prior_logprobs, by_passage.transpose(1, 2))


def _marginalized(prior_logprobs: Tensor, by_passage: Float[Tensor, "batch labels n_docs"]) -> LabelScores:
    joint = prior_logprobs[:, None, :] + by_passage
    return LabelScores(torch.logsumexp(joint, dim=2).softmax(dim=1), joint.softmax(dim=2))
