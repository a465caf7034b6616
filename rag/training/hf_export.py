"""Our checkpoints written in Hugging Face's RAG format, so that transformers loads them to equal losses.

``hf_checkpoint`` says what the format is, and reads it. What it has no words for is refused, never left out.
"""

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rag.errors import CheckpointError, ResourceError
from rag.files import write_atomically
from rag.modeling.checkpoint import read_weights, write_weights, writing
from rag.training.checkpoint import GENERATOR, QUESTION_ENCODER, ModelCard, read_card
from rag.training.hf_checkpoint import CLASSES, OURS, PREFIXES, TOKENIZERS, copy_tokenizer

_LAYOUT = re.compile(r"(.*)\{title\}(.*)\{text\}(.*)\{question\}", re.DOTALL)


class Exported(NamedTuple):
    """A checkpoint that was written, and what it could not take along."""

    folder: Path
    class_name: str  # of transformers, that loads it
    tensors: int
    notes: tuple[str, ...]


def export_rag(checkpoint: Path, folder: Path) -> Exported:
    """Write one of our checkpoints to ``folder`` so that transformers loads it, to equal losses.

    The folder appears whole or not at all: what was written is loaded with transformers first, and every tensor
    compared. Raises CheckpointError where ``folder`` holds something or ``checkpoint`` is damaged, and for what their
    format cannot say: a model without a question encoder or with one that is not DPR's, scaled or summed scores,
    another order of the layout.
    """
    card = read_card(checkpoint)
    if card.head_labels:
        raise CheckpointError(
            f"{checkpoint} classifies {', '.join(card.head_labels)} by a head, which transformers' RAG has not; train "
            "it with classification = 'token'"
        )
    config = _join_config(checkpoint, card)
    weights = {
        prefix + key: tensor
        for part, prefix in PREFIXES.items()
        for key, tensor in read_weights(checkpoint / part).items()
    }
    with _new_folder(folder) as partial:
        with writing(folder):
            _export_generator_tokenizer(checkpoint / GENERATOR, partial / TOKENIZERS[GENERATOR])
            copy_tokenizer(checkpoint / QUESTION_ENCODER, partial / TOKENIZERS[QUESTION_ENCODER])
            write_weights(partial / "model.safetensors", weights)
            _copy_generation_config(checkpoint / GENERATOR, partial)
            config.to_json_file(partial / "config.json")
        _require_loads(partial, CLASSES[card.family], weights)
    return Exported(folder, CLASSES[card.family], len(weights), tuple(_not_said(card)))


def _export_generator_tokenizer(source: Path, folder: Path) -> None:
    """tokenizer.json, and the names of its special tokens; the generic class keeps tokenizer.json as it is."""
    tokenizer, config = _read_json(source / "tokenizer.json"), _read_json(source / "config.json")
    pieces = {token["id"]: token["content"] for token in tokenizer.get("added_tokens", ())}
    names = {name: pieces.get(config.get(f"{name}_id")) for name in ("bos_token", "eos_token", "pad_token")}
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        **{name: piece for name, piece in names.items() if piece},
        **({"unk_token": "<unk>"} if "<unk>" in pieces.values() else {}),
    }
    write_atomically(folder / "tokenizer.json", (source / "tokenizer.json").read_bytes())
    write_atomically(folder / "tokenizer_config.json", json.dumps(about, indent=2).encode())


def _copy_generation_config(source: Path, folder: Path) -> None:
    """What the generator is made to write first (mBART's language); transformers looks for it beside the model."""
    if (source / "generation_config.json").is_file():
        write_atomically(folder / "generation_config.json", (source / "generation_config.json").read_bytes())


def _join_config(checkpoint: Path, card: ModelCard) -> Any:
    """Their configuration of one of our models. Raises CheckpointError for what it cannot say."""
    from transformers import RagConfig

    _require_expressible(checkpoint, card)
    prefix, title_sep, doc_sep = _separators(card.layout)
    generator, encoder = (_read_json(checkpoint / part / "config.json") for part in (GENERATOR, QUESTION_ENCODER))
    if encoder.get("model_type") != "dpr":
        raise CheckpointError(
            f"the question encoder is a {encoder.get('model_type')} model, and transformers' RAG takes its vectors as "
            f"DPR's gives them; {checkpoint} holds generator and question encoder as ordinary transformers folders"
        )
    generator |= {"prefix": prefix, "bos_token_id": generator.get("bos_token_id")}  # theirs asks every generator for it
    assert card.encoder, "required above"
    config = RagConfig(
        question_encoder=encoder,
        generator=generator,
        n_docs=card.n_docs,
        title_sep=title_sep,
        doc_sep=doc_sep,
        max_combined_length=card.max_source_tokens,
        retrieval_vector_size=encoder.get("projection_dim") or encoder["hidden_size"],
        index_name="custom",  # theirs would otherwise fetch the passages of the public checkpoints
    )
    config.architectures = [CLASSES[card.family]]
    known = card.model_dump(include={"passage_fingerprint", "row_ids_sha256", "trained_steps"})
    setattr(config, OURS, {"encoder": card.encoder.path, **known})
    return config


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CheckpointError(f"{path} is missing or damaged ({reason}); copy it again or train the model") from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{path} is damaged (it holds no object); copy it again or train the model")
    return found


def _require_expressible(checkpoint: Path, card: ModelCard) -> None:
    if card.encoder is None or card.family not in CLASSES:
        what = "a closed-book model" if card.family == "closed-book" else f"trained with {card.retriever}"
        raise CheckpointError(
            f"{checkpoint} is {what} and has no question encoder, which every RAG checkpoint of transformers holds; "
            f"its generator is an ordinary transformers folder: {checkpoint / GENERATOR}"
        )
    changed = [
        f"encoder.{name} = {getattr(card.encoder, name)}"
        for name, theirs in (("score_scale", 1.0), ("normalize", False), ("question_prefix", ""))
        if getattr(card.encoder, name) != theirs
    ] + (["retriever = hybrid"] if card.retriever == "hybrid" else [])
    if changed:
        raise CheckpointError(
            f"{checkpoint} was trained with {', '.join(changed)}; transformers' RAG scores passages by the bare inner "
            "product, so the exported model would be another one"
        )


def _separators(layout: str) -> tuple[str, str, str]:
    """Prefix, title_sep and doc_sep of a layout in their order.

    >>> _separators("{title} / {text} // {question}")
    ('', ' / ', ' // ')
    """
    parts = _LAYOUT.fullmatch(layout)
    if parts is None or any("  " in part for part in parts.groups()):  # theirs makes one blank of two
        raise CheckpointError(
            f"transformers' RAG lays its input out as title, text, question, with single blanks; {layout!r} cannot be "
            "said there"
        )
    prefix, title_sep, doc_sep = parts.groups()
    return prefix, title_sep, doc_sep


def _not_said(card: ModelCard) -> Iterator[str]:
    yield "transformers gets passages and index on its own (RagRetriever, index_name custom); none are exported"
    yield f"beyond {card.max_source_tokens} tokens transformers cuts the question, which comes last; here the text"


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A folder to write into, which gets its name at the end; a link leads to where that is.

    Raises CheckpointError for one that holds something or is worked in, ResourceError where none can be made.
    """
    try:
        place = folder.resolve()
        if place == Path.cwd():
            raise CheckpointError(f"{folder} is the folder you are in; name a new one")
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise CheckpointError(f"{folder} exists and is not an empty folder; name a new one")
        place.parent.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix=".export-", dir=place.parent)
    except (OSError, RuntimeError) as error:  # the latter for links in a circle
        reason = getattr(error, "strerror", None) or error
        raise ResourceError(f"{folder} cannot be made ({reason}); name a place that can be written") from error
    with scratch as beside:
        partial = Path(beside) / "model"
        partial.mkdir()
        yield partial
        with writing(folder):
            partial.rename(place)


def _require_loads(folder: Path, class_name: str, weights: dict[str, Tensor]) -> None:
    """Load with transformers and compare: it has untied and re-tied output heads in silence before."""
    import transformers

    model, report = getattr(transformers, class_name).from_pretrained(
        folder, local_files_only=True, dtype=torch.float32, output_loading_info=True
    )
    problems = [f"{kind} {next(iter(report[kind]))}" for kind in ("missing_keys", "unexpected_keys") if report[kind]]
    loaded = model.state_dict()
    known = weights.keys() & loaded.keys()
    problems += [f"{key} differs" for key in known if not torch.equal(loaded[key], weights[key].float())]
    stored = {loaded[key].data_ptr() for key in known}
    problems += [f"{key} is not tied" for key in loaded.keys() - known if loaded[key].data_ptr() not in stored]
    if problems:
        raise CheckpointError(
            f"transformers {transformers.__version__} does not give the exported model back ({problems[0]}); nothing "
            "was written"
        )
