"""Questions and passages as vectors: DPR, or any BERT-like model with cls or mean pooling, from a local folder.

The side is named at every call: ``embed_questions`` and ``encode_questions`` for x, ``encode_passages`` for z. One
Encoder holds one set of weights, so DPR's two encoders are two of them (``path`` and ``context_path`` of the study).
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from rag.config import EncoderConfig
from rag.errors import CheckpointError, ConfigError, DataError
from rag.parallel import on_threads

_BATCH_TOKENS = 2048  # padded tokens a batch; only speed and memory depend on it
_TOKENIZE_ROWS = 4096  # rows tokenized at a time, so that token ids of a large corpus never lie in memory at once
_POOLER_IS_OPTIONAL = {"bert", "mpnet", "roberta", "xlm-roberta"}
_DPR_CLASSES = {"DPRQuestionEncoder", "DPRContextEncoder"}
_TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model")
Batches = Iterable[Sequence[int]]


class Encoder:
    """One encoder with its tokenizer and everything that decides what its vectors are.

    ``module`` is the torch model; training it trains the question side. Vectors of questions are multiplied by
    ``score_scale`` (the inverse temperature of p(z|x)), vectors of passages never are.
    """

    def __init__(self, module: nn.Module, tokenizer: Any, config: EncoderConfig) -> None:
        self.module = module
        self.config = config
        self._tokenizer = tokenizer
        self._tokenizing = Lock()
        self._is_dpr = type(module).__name__ in _DPR_CLASSES
        self._tokenizer_hash = _tokenizer_hash(tokenizer)
        self.dim = _dimension(module)

    @classmethod
    def load(cls, path: Path, config: EncoderConfig) -> "Encoder":
        """The encoder of a transformers folder (config.json, tokenizer, model.safetensors); nothing is downloaded.

        Raises ConfigError if ``path`` is no such folder or a maximum length is beyond the model's positions, and
        CheckpointError if its weights are damaged or incomplete.
        """
        if not (path / "config.json").is_file():
            raise ConfigError(f"no encoder at {path}: a folder with config.json and model.safetensors is needed")
        module, tokenizer = _load_module(path), _load_tokenizer(path)
        _check_lengths(module, config, path)
        return cls(module.eval(), tokenizer, config)

    def save(self, folder: Path) -> None:
        """Write weights (safetensors), configuration and tokenizer, so that ``Encoder.load`` gives this one back."""
        self.module.save_pretrained(folder)  # type: ignore[operator]  # a transformers model
        self._tokenizer.save_pretrained(folder)

    @property
    def fingerprint(self) -> str:
        """sha256 of all that decides a vector of either side: weights as they are now, tokenizer and options."""
        options = self.config.model_dump(include={"max_question_tokens", "score_scale"})
        return _sha256(self.passage_fingerprint, json.dumps(options, sort_keys=True))

    @property
    def passage_fingerprint(self) -> str:
        """sha256 of all that decides a vector of a passage: as ``fingerprint``, without the question's options.

        Stored with vectors and index, so that a change of ``score_scale`` encodes no passage again.
        """
        options = self.config.model_dump(include={"pooling", "normalize", "max_passage_tokens"})
        layout = "pair" if self._is_dpr else "title. text"
        described = json.dumps({**options, "layout": layout}, sort_keys=True)
        return _sha256(_weights_hash(self.module), self._tokenizer_hash, described)

    def tokenize_questions(self, texts: Sequence[str]) -> dict[str, Tensor]:
        """Padded inputs of one batch of questions, on the module's device."""
        return self._pad(self._question_rows(texts))

    def embed_questions(self, inputs: dict[str, Tensor]) -> Float[Tensor, "batch dim"]:
        """Question vectors times ``score_scale``, with gradient to the weights (unless the caller switched it off)."""
        return self._embed(inputs) * self.config.score_scale

    def encode_questions(self, texts: Sequence[str]) -> Float[np.ndarray, "batch dim"]:
        """Question vectors times ``score_scale``, in input order, without dropout or gradient.

        Raises DataError naming the first row whose vector is not finite.
        """
        vectors = self._encode(self._question_rows, len(texts), lambda rows: [texts[row] for row in rows], iter)
        return _finite(vectors * np.float32(self.config.score_scale), "question")

    def encode_passages(
        self,
        titles: Sequence[str],
        texts: Sequence[str],
        progress: Callable[[Batches], Batches] = iter,
    ) -> Float[np.ndarray, "passages dim"]:
        """Passage vectors in input order, never scaled; ``progress`` sees batches (lists of rows) go by.

        A row's vector does not depend on its batch (to 1e-5). DPR reads title and text as a pair, other encoders
        read "title. text". Raises ValueError if the two lengths differ, and DataError naming the first row whose
        vector is not finite.
        """
        if len(titles) != len(texts):
            raise ValueError(f"{len(titles)} titles for {len(texts)} texts; give one title (or '') for each text")

        def pick(rows: Sequence[int]) -> list[tuple[str, str]]:
            return [(titles[row], texts[row]) for row in rows]

        return _finite(self._encode(self._passage_rows, len(texts), pick, progress), "passage")

    def _question_rows(self, texts: Sequence[str]) -> list[dict[str, list[int]]]:
        return self._tokenize({"text": list(texts)}, self.config.max_question_tokens)

    def _passage_rows(self, passages: Sequence[tuple[str, str]]) -> list[dict[str, list[int]]]:
        titles, texts = [title for title, _ in passages], [text for _, text in passages]
        if self._is_dpr:  # trained on pairs
            return self._tokenize({"text": titles, "text_pair": texts}, self.config.max_passage_tokens)
        # One text: MiniLM found 68.3 % of 300 real questions' passages at rank 1 so, and 66.0 % with pairs.
        joined = [f"{title}. {text}" if title else text for title, text in passages]
        return self._tokenize({"text": joined}, self.config.max_passage_tokens)

    def _tokenize(self, texts: dict[str, list[str]], max_tokens: int) -> list[dict[str, list[int]]]:
        if not texts["text"]:
            return []
        # Asked for by the model's need: not every tokenizer class gives token types on its own, and DPR reads pairs.
        types = getattr(self.module.config, "type_vocab_size", 0) > 1
        with self._tokenizing:  # the tokenizer keeps the length of the last call: two threads would quarrel over it
            encoding = self._tokenizer(**texts, truncation=True, max_length=max_tokens, return_token_type_ids=types)
        return [dict(zip(encoding, row, strict=True)) for row in zip(*encoding.values(), strict=True)]

    def _pad(self, rows: list[dict[str, list[int]]]) -> dict[str, Tensor]:
        if not rows:
            raise ValueError("no texts to encode; give at least one")
        padded = self._tokenizer.pad(rows, padding="longest", return_tensors="pt")
        return {name: tensor.to(self._device) for name, tensor in padded.items()}

    @property
    def _device(self) -> torch.device:
        return next(self.module.parameters()).device

    def _embed(self, inputs: dict[str, Tensor]) -> Float[Tensor, "batch dim"]:
        output = self.module(**inputs)
        if self._is_dpr:  # the cls vector, projected where the checkpoint has a projection
            pooled: Tensor = output.pooler_output
        elif self.config.pooling == "cls":
            pooled = output.last_hidden_state[:, 0]
        else:
            mask = inputs["attention_mask"].unsqueeze(-1).to(output.last_hidden_state.dtype)
            pooled = (output.last_hidden_state * mask).sum(dim=1) / mask.sum(dim=1)
        return functional.normalize(pooled, dim=-1) if self.config.normalize else pooled

    def _encode(
        self,
        tokenize: Callable[[Sequence[Any]], list[dict[str, list[int]]]],
        count: int,
        pick: Callable[[Sequence[int]], Sequence[Any]],
        progress: Callable[[Batches], Batches],
    ) -> Float[np.ndarray, "rows dim"]:
        vectors = np.empty((count, self.dim), np.float32)
        with _evaluating(self.module):
            for start in range(0, count, _TOKENIZE_ROWS):
                rows = tokenize(pick(range(start, min(start + _TOKENIZE_ROWS, count))))
                batches = _batches([len(row["input_ids"]) for row in rows])
                embedded = on_threads(
                    self._embed_rows, [[rows[row] for row in batch] for batch in batches], self._device
                )
                for batch, found in zip(progress(batches), embedded, strict=True):
                    vectors[[start + row for row in batch]] = found
        return vectors

    @torch.inference_mode()
    def _embed_rows(self, rows: list[dict[str, list[int]]]) -> Float[np.ndarray, "rows dim"]:
        embedded: np.ndarray = self._embed(self._pad(rows)).float().cpu().numpy()
        return embedded


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Rows grouped so that a padded batch holds at most the token budget; alike lengths together, longest first.

    >>> _batches([3, 4000, 3])
    [[1], [0, 2]]
    """
    batches: list[list[int]] = []
    room = 0
    for row in sorted(range(len(lengths)), key=lambda row: (-lengths[row], row)):
        if not batches or len(batches[-1]) >= room:
            batches.append([])
            room = max(1, _BATCH_TOKENS // max(1, lengths[row]))  # the first row of a batch is its longest
        batches[-1].append(row)
    return batches


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    was_training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(was_training)


def _finite(vectors: Float[np.ndarray, "rows dim"], what: str) -> Float[np.ndarray, "rows dim"]:
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise DataError(
            f"{what} row {row} has a vector that is not finite ({int((~finite).sum())} of {len(vectors)} rows); "
            "the encoder's weights are broken: load an earlier checkpoint or lower the learning rate"
        )
    return vectors


def _load_module(path: Path) -> nn.Module:
    from safetensors import SafetensorError, safe_open
    from transformers import AutoConfig, AutoModel, DPRContextEncoder, DPRQuestionEncoder

    weights = path / "model.safetensors"
    if not weights.is_file():
        raise CheckpointError(f"{path} has no model.safetensors; other weight formats are not read: convert it once")
    try:
        config = AutoConfig.from_pretrained(path, local_files_only=True)
        with safe_open(weights, framework="pt") as file:
            has_pooler = any("pooler." in name for name in file.keys())  # noqa: SIM118  not a mapping
        options = {} if has_pooler or config.model_type not in _POOLER_IS_OPTIONAL else {"add_pooling_layer": False}
        dpr = {"DPRQuestionEncoder": DPRQuestionEncoder, "DPRContextEncoder": DPRContextEncoder}
        loader = dpr.get((config.architectures or [""])[0], AutoModel)
        module, report = loader.from_pretrained(
            path, local_files_only=True, use_safetensors=True, dtype=torch.float32, output_loading_info=True, **options
        )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise CheckpointError(f"the encoder at {path} cannot be loaded: {error}") from error
    if report["missing_keys"]:
        raise CheckpointError(f"the encoder at {path} lacks the weights {', '.join(sorted(report['missing_keys']))}")
    if getattr(module, "pooler", None) is not None:
        module.pooler = None  # a head for another task; never part of a vector, so neither trained nor hashed
    return module  # type: ignore[no-any-return]


def _load_tokenizer(path: Path) -> Any:
    from transformers import AutoTokenizer

    if not any((path / name).is_file() for name in _TOKENIZER_FILES):
        # transformers would make up a tokenizer of five special tokens here, and read every word as unknown
        raise CheckpointError(f"{path} has no tokenizer; one of {', '.join(_TOKENIZER_FILES)} is needed")
    try:
        return AutoTokenizer.from_pretrained(path, local_files_only=True, use_fast=True)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"the tokenizer at {path} cannot be loaded: {error}") from error


def _check_lengths(module: nn.Module, config: EncoderConfig, path: Path) -> None:
    positions: int = getattr(module.config, "max_position_embeddings", 512)
    for key in ("max_question_tokens", "max_passage_tokens"):
        if getattr(config, key) > positions:
            raise ConfigError(f"encoder.{key} = {getattr(config, key)}, but {path} has only {positions} positions")


def _dimension(module: nn.Module) -> int:
    config: Any = module.config
    return int(getattr(config, "projection_dim", 0) or config.hidden_size)


def _weights_hash(module: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _tokenizer_hash(tokenizer: Any) -> str:
    """Hash of the tokenizer without its truncation and padding, which are set anew by every call."""
    described = json.loads(tokenizer.backend_tokenizer.to_str())
    return _sha256(json.dumps({**described, "truncation": None, "padding": None}, sort_keys=True))


def _sha256(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
