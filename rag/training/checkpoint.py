"""A trained model on disk: generator, question encoder, and a card that says what they were trained with.

``rag.json`` is the card; ``generator/`` and ``question_encoder/`` are ordinary transformers folders (safetensors).
A closed-book model and one that was trained with BM25 have no question encoder.
"""

import json
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from rag.config import EncoderConfig, RetrieverKind
from rag.errors import CheckpointError
from rag.files import write_atomically
from rag.modeling.generator import Generator
from rag.modeling.models import Family, RagModel
from rag.retrieval.encoders import Encoder

_CARD = "rag.json"


class ModelCard(BaseModel):
    """What a checkpoint is and what it belongs to."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = 1
    family: Family
    retriever: RetrieverKind | None  # that it was trained with; None for closed-book
    n_docs: int
    layout: str
    max_source_tokens: int
    encoder: EncoderConfig | None  # of the question encoder, where it has one
    passage_fingerprint: str | None  # of the context encoder it was trained against, where there was one
    trained_steps: int


class Checkpoint(NamedTuple):
    """A loaded model, in evaluation mode."""

    card: ModelCard
    model: RagModel
    encoder: Encoder | None


def save_checkpoint(folder: Path, model: RagModel, encoder: Encoder | None, card: ModelCard) -> None:
    """Write the model; the card comes last, so a folder with a card is whole."""
    model.generator.save(folder / "generator")
    if encoder is not None:
        encoder.save(folder / "question_encoder")
    write_atomically(folder / _CARD, f"{card.model_dump_json(indent=2)}\n".encode())


def load_checkpoint(
    folder: Path, family: Family, retriever: RetrieverKind | None, passage_fingerprint: str | None = None
) -> Checkpoint:
    """Read a model of ``family`` for a ``retriever`` whose vectors, if any, come from ``passage_fingerprint``.

    Raises CheckpointError where the folder holds none or a damaged one, where it is of another family or was trained
    with another kind of retriever (it would answer, wrongly), or against vectors of another context encoder.
    """
    try:
        card = ModelCard.model_validate(json.loads((folder / _CARD).read_bytes()))
    except OSError as error:
        raise CheckpointError(f"no model at {folder}: {_CARD} cannot be read ({error.strerror}); train it") from error
    except (ValueError, ValidationError) as error:
        raise CheckpointError(f"{folder / _CARD} is damaged; train the model again") from error
    if card.family != family:
        raise CheckpointError(f"{folder} is a {card.family} model and was asked for as {family}; name the right family")
    if card.retriever != retriever:
        raise CheckpointError(
            f"{folder} was trained with the retriever {card.retriever or '(none)'} and was asked for with "
            f"{retriever or '(none)'}; scores of another kind would be another p(z|x): name the right retriever"
        )
    if passage_fingerprint is not None and card.passage_fingerprint != passage_fingerprint:
        raise CheckpointError(
            f"{folder} was trained against passage vectors {str(card.passage_fingerprint)[:12]}, the index holds "
            f"{passage_fingerprint[:12]}; use the index of the same context encoder"
        )
    config = card.encoder  # of which path names what it was fine-tuned from
    encoder = Encoder.load(folder / "question_encoder", config, encoder_id=config.path) if config else None
    generator = Generator.load(folder / "generator")
    return Checkpoint(card, RagModel(card.family, generator, encoder.module if encoder else None), encoder)
