"""A trained model on disk: generator, question encoder, and a card that says what they were trained with.

``rag.json`` is the card; ``generator/`` and ``question_encoder/`` are ordinary transformers folders (safetensors).
A closed-book model and one that was trained with BM25 have no question encoder.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag.config import EncoderConfig, RetrieverKind
from rag.errors import CheckpointError
from rag.files import write_atomically
from rag.modeling.checkpoint import writing
from rag.modeling.generator import Generator
from rag.modeling.label_head import LabelHead
from rag.modeling.models import Family, RagModel
from rag.retrieval.encoders import Encoder

CARD, GENERATOR, QUESTION_ENCODER, HEAD = "rag.json", "generator", "question_encoder", "head.safetensors"
_FORMAT = 2  # 1 did not say which passages; it is read as well
# What a model may be used with beside the passages that it was trained with.
Allowed = Literal["nothing", "other passages", "every mismatch"]


class ModelCard(BaseModel):
    """What a checkpoint is and what it belongs to."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = Field(_FORMAT, ge=1)
    family: Family
    retriever: RetrieverKind | None  # that it was trained with; None for closed-book
    n_docs: int = Field(ge=1)
    layout: str
    max_source_tokens: int = Field(ge=1)
    encoder: EncoderConfig | None  # of the question encoder, where it has one
    passage_fingerprint: str | None  # of the context encoder it was trained against, where there was one
    row_ids_sha256: str | None = None  # of the ids of the passages it was trained with, where that is known
    trained_steps: int = Field(ge=0)  # those of what it started from as well
    head_labels: tuple[str, ...] = ()  # of the head that classifies claims; none where it has no head


class Checkpoint(NamedTuple):
    """A loaded model, in evaluation mode."""

    card: ModelCard
    model: RagModel
    encoder: Encoder | None
    caveat: str | None = None  # what was allowed, or is not known, about the passages it was trained with


def save_checkpoint(folder: Path, model: RagModel, encoder: Encoder | None, card: ModelCard) -> None:
    """Write the model; the card, with the labels of its head, comes last, so a folder with a card is whole.

    Raises ResourceError where the disk does not take it.
    """
    with writing(folder):
        model.generator.save(folder / GENERATOR)
        if encoder is not None:
            encoder.save(folder / QUESTION_ENCODER)
        if model.head is not None:
            model.head.save(folder / HEAD)
        write_card(folder, card.model_copy(update={"head_labels": model.head.labels if model.head else ()}))


def write_card(folder: Path, card: ModelCard) -> None:
    """Write the card of a model, in the format of today whichever it was read from."""
    card = card.model_copy(update={"format": _FORMAT})
    write_atomically(folder / CARD, f"{card.model_dump_json(indent=2)}\n".encode())


def read_card(folder: Path) -> ModelCard:
    """The card of the model in a folder. Raises CheckpointError where there is none, or a damaged or newer one."""
    try:
        told = json.loads((folder / CARD).read_bytes())
        found = told.get("format", _FORMAT)
        if found > _FORMAT:  # whatever else it says
            raise CheckpointError(
                f"{folder / CARD} has format {found}; this openbook reads up to {_FORMAT}: use a newer one"
            )
        return ModelCard.model_validate(told)
    except OSError as error:
        raise CheckpointError(f"no model at {folder}: {CARD} cannot be read ({error.strerror}); train it") from error
    except (ValueError, TypeError, AttributeError, ValidationError) as error:
        raise CheckpointError(f"{folder / CARD} is damaged; train the model again") from error


def load_checkpoint(
    folder: Path,
    family: Family,
    retriever: RetrieverKind | None,
    passage_fingerprint: str | None = None,
    row_ids_sha256: str | None = None,
    allowed: Allowed = "nothing",
) -> Checkpoint:
    """Read a model of ``family`` for a ``retriever`` whose passages, if any, are told by the next two.

    ``passage_fingerprint`` is of the context encoder of their vectors, ``row_ids_sha256`` of their ids; None skips
    that check. Raises CheckpointError where the folder holds none or a damaged one, where it is of another family or
    was trained with another kind of retriever (it would answer, wrongly), and as ``require_passages``.
    """
    card = read_card(folder)
    if card.family != family:
        raise CheckpointError(f"{folder} is a {card.family} model and was asked for as {family}; name the right family")
    require_retriever(folder, card, retriever)
    caveat = require_passages(card, passage_fingerprint, row_ids_sha256, allowed)
    config = card.encoder  # of which path names what it was fine-tuned from
    encoder = Encoder.load(folder / QUESTION_ENCODER, config, encoder_id=config.path) if config else None
    generator = Generator.load(folder / GENERATOR)
    head = load_head(folder, card, generator)
    model = RagModel(card.family, generator, encoder.module if encoder else None, head)
    return Checkpoint(card, model, encoder, caveat)


def load_head(folder: Path, card: ModelCard, generator: Generator) -> LabelHead | None:
    """The head that classifies claims from states of its generator, where the model has one."""
    if not card.head_labels:
        return None
    return LabelHead.load(folder / HEAD, card.head_labels, generator.config.d_model)


def require_labels(folder: Path, card: ModelCard, labels: Sequence[str]) -> None:
    """Raises CheckpointError where the model cannot classify these labels by a head without being trained to."""
    if sorted(card.head_labels) != sorted(labels):
        raise CheckpointError(
            f"{folder} has {'a head of ' + ', '.join(card.head_labels) if card.head_labels else 'no head'}, and "
            f"classification = 'head' asks for one of {', '.join(labels)}; give it steps, or set classification = "
            "'token'"
        )


def require_retriever(folder: Path, card: ModelCard, retriever: RetrieverKind | None) -> None:
    """Raises CheckpointError where the model learned to read what another kind of retriever finds."""
    if card.retriever != retriever:
        raise CheckpointError(
            f"{folder} was trained with the retriever {card.retriever or '(none)'} and was asked for with "
            f"{retriever or '(none)'}; scores of another kind would be another p(z|x): name the right retriever"
        )


def require_passages(
    card: ModelCard, passage_fingerprint: str | None, row_ids_sha256: str | None, allowed: Allowed
) -> str | None:
    """Refuse a model for passages that it was not trained with, unless that is ``allowed``.

    Returns, for the record, what was allowed, and what of it the card does not know: that cannot be refused. Raises
    CheckpointError with both hashes.
    """
    vectors, passages = ("vectors of the context encoder", "same context encoder"), ("passages", "same passages")
    sides = [
        (*vectors, card.passage_fingerprint, passage_fingerprint, "every mismatch"),
        (*passages, card.row_ids_sha256, row_ids_sha256, "other passages"),
    ]
    found = []
    for what, same, trained, asked, enough in sides:
        if asked is None or trained == asked:
            continue
        if trained is None:
            found.append(f"whether the model was trained with the {what} it answers from is not recorded")
            continue
        problem = f"the model was trained with the {what} {trained[:12]} and answers from {asked[:12]}"
        if allowed not in (enough, "every mismatch"):
            raise CheckpointError(
                f"{problem}; use the index of the {same}, train the model with this one, or set "
                "encoder.allow_mismatch = true and the report says so"
            )
        found.append(problem)
    return "; ".join(found) or None


def require_encoder_options(card: ModelCard, config: EncoderConfig) -> None:
    """Refuse to score passages otherwise than the model learned to: raises CheckpointError with the option to set."""
    for name in ("pooling", "normalize", "question_prefix", "score_scale"):
        learned, asked = getattr(card.encoder, name, None), getattr(config, name)
        if card.encoder is not None and learned != asked:
            raise CheckpointError(
                f"the model was trained with encoder.{name} = {learned!r} and the study says {asked!r}; its question "
                f"vectors fit the first one only: set encoder.{name} = {learned!r}"
            )
