"""The one way from a task's options to its kind of decoding."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from rag.config import TaskConfig
from rag.decoding import sequence_level, token_level
from rag.decoding.hypotheses import BeamOptions
from rag.decoding.labels import classify, label_token_ids
from rag.modeling.inputs import GeneratorInputs
from rag.modeling.models import RagModel


class Answer(NamedTuple):
    """The best hypothesis for one question, or its most probable label, with log p(y|x) and p(z|x,y)."""

    text: str
    logprob: float
    posterior: tuple[float, ...]


def decode(
    model: RagModel, task: TaskConfig, inputs: GeneratorInputs, prior: Float[Tensor, "batch n_docs"]
) -> list[Answer]:
    """argmax_y p(y|x) for each question: by label where the task has labels, else by the family's own search.

    ``prior`` is log p(z|x). Passages are encoded once, whatever is asked of them afterwards.
    """
    generator, tokenizer = model.generator, model.generator.tokenizer
    encoded = generator.encode(inputs.input_ids.flatten(0, 1), inputs.attention_mask.flatten(0, 1))
    if task.labels:
        scores = classify(generator, encoded, prior, label_token_ids(tokenizer, task.labels))
        best = scores.probs.argmax(dim=1).tolist()
        return [
            Answer(list(task.labels)[label], scores.probs[row, label].log().item(), tuple(posterior[label].tolist()))
            for row, (label, posterior) in enumerate(zip(best, scores.posterior_probs, strict=True))
        ]
    options = BeamOptions(num_beams=task.num_beams, max_new_tokens=task.max_new_tokens)
    if model.family == "rag-sequence":
        search = sequence_level.thorough if task.sequence_decoding == "thorough" else sequence_level.fast
    else:  # RAG-Token; closed book is the same with one passage
        search = token_level.beam
    best_hypotheses = [hypotheses[0] for hypotheses in search(generator, encoded, prior, options)]
    return [Answer(tokenizer.decode(best.token_ids), best.logprob, best.posterior) for best in best_hypotheses]
