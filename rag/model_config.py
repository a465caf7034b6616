"""A model of a study, its family, its passages and its recipe, as a frozen model; part of ``config``."""

from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from rag.retrieval_config import RetrieverKind
from rag.source_config import Frozen


class ModelConfig(Frozen):
    """One model to train: its family, its passages and its recipe.

    The paper prints no learning rate, batch size or number of steps, so these defaults are ours.
    """

    family: Literal["rag-token", "rag-sequence", "closed-book"]
    corpus: str | None = None  # the passage index it is trained and tested with; None only for closed-book
    retriever: RetrieverKind = "dense"  # bm25: its scores are the logits of p(z|x), as in the paper's ablation
    tasks: dict[str, PositiveFloat] = Field(min_length=1)  # trained on the mixture of these, drawn by weight
    n_docs: int = Field(5, ge=1)
    test_n_docs: int | None = Field(None, ge=1)  # None: n_docs
    sweep_n_docs: tuple[PositiveInt, ...] = ()  # test questions are answered again with so many passages: (5, 10, 50)
    steps: int = Field(1000, ge=0)
    batch_size: int = Field(8, ge=1)
    learning_rate: float = Field(3e-5, gt=0)
    question_encoder_learning_rate: float = Field(1e-5, ge=0)
    warmup_steps: int = Field(0, ge=0)
    max_grad_norm: float = Field(1.0, gt=0)
    dropout: bool = True  # as the pretrained models' own configurations say
    frozen_encoder_layers: int = Field(0, ge=0)  # this many of the generator's lower encoder layers stay as they are
    checkpoint_every: int = Field(100, ge=1)
    init_from: str | None = None  # another model of this study, as WebQuestions starts from the NQ model
    # A trained RAG model (openbook's or transformers' format; a folder or a hub name) that it starts from, instead of
    # generator.path and encoder.path; layout and max_source_tokens come with it. steps = 0 tests it as it is.
    checkpoint: str | None = None

    @model_validator(mode="after")
    def _passages_where_needed(self) -> "ModelConfig":
        if (self.family == "closed-book") != (self.corpus is None):
            raise ValueError("corpus names the passages of a RAG model and is left out for closed-book")
        if self.sweep_n_docs and self.corpus is None:
            raise ValueError(
                "sweep_n_docs changes how many passages are read, and closed-book reads none; leave it out"
            )
        return self

    @model_validator(mode="after")
    def _one_start(self) -> "ModelConfig":
        if self.steps == 0 and not (self.checkpoint or self.init_from):
            raise ValueError("steps = 0 trains nothing: give steps, or a trained model as checkpoint or init_from")
        if self.checkpoint and self.init_from:
            raise ValueError("checkpoint and init_from both say what the model starts from; leave one of them out")
        if self.checkpoint and self.family == "closed-book":
            raise ValueError(
                "checkpoint is a RAG model and this is closed-book; name its generator's folder in generator.path"
            )
        return self
