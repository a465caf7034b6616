"""RAG-Sequence, RAG-Token and closed-book as one module from tensors to a loss.

It never retrieves and never reads text: ``rag.pipeline`` and the trainer compose encoder, index and this.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, assert_never

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from rag.errors import ConfigError
from rag.modeling.generator import EncodedPassages, Generator
from rag.modeling.inputs import GeneratorInputs
from rag.modeling.label_head import LabelHead
from rag.modeling.marginalize import marginalize_sequence, marginalize_token, posterior_logprobs, prior_logprobs
from rag.modeling.tokenizer import TargetBatch

Family = Literal["rag-token", "rag-sequence", "closed-book"]


class LossOutput(NamedTuple):
    """The loss of a batch in nats, and what the retriever and the answer say of each passage.

    ``per_example`` is -log p(y|x), not divided by length; ``per_token`` is the whole batch's loss divided by its
    scored tokens, for people to compare. Priors and posteriors carry no gradient.
    """

    per_example: Float[Tensor, "batch"]
    per_token: Float[Tensor, ""]
    prior_logprobs: Float[Tensor, "batch n_docs"]
    posterior_logprobs: Float[Tensor, "batch n_docs"]


def score_passages(
    question_vectors: Float[Tensor, "batch dim"], passage_vectors: Float[Tensor, "batch n_docs dim"]
) -> Float[Tensor, "batch n_docs"]:
    """doc_scores: inner products of each question with its own passages, differentiable in the question.

    >>> score_passages(torch.tensor([[1.0, 2.0]]), torch.tensor([[[3.0, 0.0], [0.0, 4.0]]]))
    tensor([[3., 8.]])
    """
    return torch.einsum("bd,bnd->bn", question_vectors, passage_vectors)


class RagModel(nn.Module):
    """A generator and, for the RAG families, the question encoder that is trained with it.

    The question encoder is held so that its parameters are trained and saved; the model itself takes its output
    as ``doc_scores``. With one passage, both RAG families are the plain generator, and so is closed-book. ``head`` is
    of a model that classifies claims by one.
    """

    def __init__(
        self,
        family: Family,
        generator: Generator,
        question_encoder: nn.Module | None = None,
        head: LabelHead | None = None,
    ) -> None:
        super().__init__()
        self.family: Family = family
        self.generator = generator
        self.question_encoder = question_encoder
        self.head = head
        self.eval()

    def loss(
        self,
        inputs: GeneratorInputs,
        doc_scores: Float[Tensor, "batch n_docs"],
        target_ids: Int[Tensor, "batch target_len"],
        target_mask: Bool[Tensor, "batch target_len"],
        doc_mask: Bool[Tensor, "batch n_docs"] | None = None,
    ) -> LossOutput:
        """-log p(y|x) of each example (nats), differentiable in the generator and in ``doc_scores``.

        For RAG-Sequence the gradient with respect to doc_scores is prior minus posterior, so passages that
        explain the answer equally well teach the retriever nothing. Closed-book takes zeros as doc_scores.

        Raises DataError if a question has no passage.
        """
        tokens = self.token_logprobs(inputs, target_ids, target_mask)
        return self._marginal(tokens, prior_logprobs(doc_scores, doc_mask), target_mask)

    def label_loss(
        self,
        inputs: GeneratorInputs,
        doc_scores: Float[Tensor, "batch n_docs"],
        claims: TargetBatch,
        labels: Sequence[str],
        doc_mask: Bool[Tensor, "batch n_docs"] | None = None,
    ) -> LossOutput:
        """-log sum_z p(z|x) p(label|x,z) by the head (nats): that of a target of one token, in both families.

        Raises DataError if a question has no passage, ConfigError for a model without a head, ValueError unless each
        question has a claim and a label.
        """
        counts = (len(inputs.input_ids), len(claims.ids), len(labels))
        if len(set(counts)) > 1:  # they would be broadcast
            raise ValueError("{} questions, {} claims and {} labels; give one of each".format(*counts))
        encoded = self.generator.encode(inputs.input_ids.flatten(0, 1), inputs.attention_mask.flatten(0, 1))
        of_labels = self.label_logprobs(encoded, claims)
        assert self.head is not None, "refused one line above"
        places = torch.tensor(self.head.places(labels), device=of_labels.device)[:, None]
        tokens = of_labels.gather(2, places[..., None].expand(-1, inputs.input_ids.shape[1], 1))
        return self._marginal(tokens, prior_logprobs(doc_scores, doc_mask), torch.ones_like(places, dtype=torch.bool))

    def label_logprobs(self, encoded: EncodedPassages, claims: TargetBatch) -> Float[Tensor, "batch n_docs labels"]:
        """log p(label|x,z) of every label of the head under each passage (nats); the claims are read by the decoder."""
        if self.head is None:
            raise ConfigError("the model has no head to classify with; train it with classification = 'head'")
        n_docs = encoded.hidden.shape[0] // len(claims.ids)
        ids, mask = (part.repeat_interleave(n_docs, dim=0) for part in claims)
        logprobs: Tensor = self.head(self.generator.last_states(encoded, ids, mask))
        return logprobs.view(len(claims.ids), n_docs, -1)

    def _marginal(self, tokens: Tensor, prior: Tensor, target_mask: Tensor) -> LossOutput:
        logprobs = self.marginalize(tokens, prior, target_mask)
        with torch.no_grad():
            posterior = posterior_logprobs(tokens, prior, target_mask)
            per_token = -logprobs.sum() / target_mask.sum().clamp(min=1)
        return LossOutput(-logprobs, per_token, prior.detach(), posterior)

    def token_logprobs(
        self,
        inputs: GeneratorInputs,
        target_ids: Int[Tensor, "batch target_len"],
        target_mask: Bool[Tensor, "batch target_len"],
    ) -> Float[Tensor, "batch n_docs target_len"]:
        """log p(y_t|x,z,y_<t) of each target under each passage (nats), 0 where the mask is False."""
        batch, n_docs, _ = inputs.input_ids.shape
        encoded = self.generator.encode(inputs.input_ids.flatten(0, 1), inputs.attention_mask.flatten(0, 1))
        ids, mask = target_ids.repeat_interleave(n_docs, dim=0), target_mask.repeat_interleave(n_docs, dim=0)
        return self.generator.token_logprobs(encoded, ids, mask).view(batch, n_docs, -1)

    def marginalize(
        self,
        token_logprobs: Float[Tensor, "batch n_docs target_len"],
        prior: Float[Tensor, "batch n_docs"],
        target_mask: Bool[Tensor, "batch target_len"],
    ) -> Float[Tensor, "batch"]:
        """log p(y|x) under this family."""
        match self.family:
            case "rag-token":
                return marginalize_token(token_logprobs, prior, target_mask)
            case "rag-sequence" | "closed-book":
                return marginalize_sequence(token_logprobs, prior, target_mask)
            case _:
                assert_never(self.family)
