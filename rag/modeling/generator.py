"""The sequence-to-sequence model p(y|x,z): encode passages once, score targets, and decode step by step.

T5, FLAN-T5 and mT5, BART, mBART, PLBart, PEGASUS, Blenderbot and M2M100 work, by one interface, and every other
encoder-decoder that shows at load that it gives what transformers gives (``self_test``; LongT5 does). Rows are
passages in the order question-major, passage-minor; several decoder rows may share one passage.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional
from transformers.cache_utils import DynamicCache, DynamicLayer, EncoderDecoderCache

from rag.errors import CheckpointError
from rag.files import write_atomically
from rag.modeling import attention, checkpoint, self_test
from rag.modeling.tokenizer import GeneratorTokenizer, TargetBatch

# On a CPU passages are encoded in groups of like length: short ones beside long ones would be mostly padding.
_ROWS_AT_ONCE = 8


class KeyValues(NamedTuple):
    """The attention keys and values of one decoder layer."""

    keys: Float[Tensor, "passages heads length dim"]
    values: Float[Tensor, "passages heads length dim"]

    def select(self, rows: Int[Tensor, "kept"] | slice) -> "KeyValues":
        return KeyValues(self.keys[rows], self.values[rows])

    def first(self, length: int) -> "KeyValues":
        return KeyValues(self.keys[:, :, :length], self.values[:, :, :length])


class EncodedPassages(NamedTuple):
    """Encoder states of passages; ``cross`` holds the decoder's keys over them once these are computed."""

    hidden: Float[Tensor, "passages source_len dim"]
    attention_mask: Bool[Tensor, "passages source_len"]
    cross: tuple[KeyValues, ...] = ()

    def select(self, passages: Int[Tensor, "kept"] | slice) -> "EncodedPassages":
        """The chosen passages alone; a slice copies nothing."""
        cross = tuple(layer.select(passages) for layer in self.cross)
        return EncodedPassages(self.hidden[passages], self.attention_mask[passages], cross)


@dataclass(frozen=True)
class DecoderState:
    """What decoding has read so far, beside the passages it attends to.

    ``past`` holds the keys of every token that any row of a passage has read, and ``history`` says which of them are
    a row's own. So a beam that gets another history copies no keys.
    """

    encoded: EncodedPassages
    past: tuple[attention.ReadKeys, ...]  # one a layer
    history: Bool[Tensor, "rows read"]
    length: int = 0  # tokens that each row has read

    def select(self, rows: Int[Tensor, "rows"]) -> "DecoderState":
        """Rows repeated, dropped or put in another order; each must stay with its passage."""
        return replace(self, history=self.history[rows])

    def keep(self, passages: Int[Tensor, "kept"], rows: Int[Tensor, "rows"]) -> "DecoderState":
        """Only these passages and these rows of them: what finished questions leave behind."""
        past = tuple(layer.select(passages, self.history.shape[1]) for layer in self.past)
        return DecoderState(self.encoded.select(passages), past, self.history[rows], self.length)


class DecoderStep(NamedTuple):
    """Log-probabilities of every next token, and the state after the tokens given."""

    logprobs: Float[Tensor, "rows vocab"]
    state: DecoderState


class Generator(nn.Module):
    """p(y|x,z) of a transformers encoder-decoder, in evaluation mode until ``train()`` is called.

    ``first_token_ids`` are what every target begins with, by the tokenizer: ``<s>`` for BART, nothing for T5.
    They are scored in training like any token, so decoding begins with them instead of choosing.
    """

    model: Any  # a transformers encoder-decoder, which has no useful type
    config: Any

    def __init__(self, model: nn.Module, tokenizer: GeneratorTokenizer) -> None:
        super().__init__()
        self.model = model
        self.config = model.config
        self.tokenizer = tokenizer
        self.pad_token_id = tokenizer.pad_token_id
        self.eos_token_id = tokenizer.eos_token_id
        self.first_token_ids = tokenizer.first_token_ids
        self.start_token_id = _start_token_id(self.config)
        self.eval()

    @classmethod
    def load(cls, path: Path, dtype: torch.dtype = torch.float32) -> "Generator":
        """Load a local model folder: config.json, model.safetensors, tokenizer.json. Nothing is downloaded.

        The output head gets the weights that the file has for it, tied or not, and that is verified.

        Raises ConfigError for a folder that is missing or no encoder-decoder, or of a family that gives other numbers
        here than in transformers, CheckpointError for damaged or incomplete files.
        """
        model = checkpoint.load_seq2seq(path)
        config, forced = model.config, model.generation_config.forced_bos_token_id
        tokenizer = GeneratorTokenizer.load(path, config.pad_token_id, _one_id(config.eos_token_id), forced)
        if config.decoder_start_token_id is None:
            config.decoder_start_token_id = tokenizer.language_token_id
        generator = cls(model, tokenizer)
        _require_embeddings(generator, path)
        self_test.check_family(generator, path)
        return generator.to(dtype)

    def save(self, path: Path) -> None:
        """Write config.json, model.safetensors and tokenizer.json; ``load`` gives equal outputs back."""
        checkpoint.save_seq2seq(self.model, path)
        write_atomically(path / "tokenizer.json", self.tokenizer.backend.to_str(pretty=True).encode())

    @property
    def device(self) -> torch.device:
        """Where the weights lie."""
        return next(self.parameters()).device

    def targets(self, texts: list[str]) -> TargetBatch:
        """Gold answers as padded token ids with their mask, on the generator's device."""
        ids, mask = self.tokenizer.targets(texts)
        return TargetBatch(ids.to(self.device), mask.to(self.device))

    def encode(
        self, input_ids: Int[Tensor, "passages source_len"], attention_mask: Bool[Tensor, "passages source_len"]
    ) -> EncodedPassages:
        """Encoder states of each row, differentiable. Every row needs at least one unmasked token."""
        ids, mask = input_ids.to(self.device), attention_mask.to(self.device)
        lengths = (mask * torch.arange(1, mask.shape[1] + 1, device=mask.device)).amax(dim=1)
        if self.device.type != "cpu" or len(ids) <= _ROWS_AT_ONCE:  # an accelerator is fastest with all rows at once
            return EncodedPassages(self._encode(ids, mask), mask)
        order = lengths.argsort(stable=True)
        parts = []
        for rows in order.chunk(-(-len(ids) // _ROWS_AT_ONCE)):  # of equal size: 5 + 5, not 8 + 2
            width = int(lengths[rows[-1]])
            states = self._encode(ids[rows, :width], mask[rows, :width])
            parts.append(functional.pad(states, (0, 0, 0, mask.shape[1] - width)))
        return EncodedPassages(torch.cat(parts)[order.argsort()], mask)

    def _encode(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        states: Tensor = self.model.get_encoder()(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return states

    def token_logprobs(
        self,
        encoded: EncodedPassages,
        target_ids: Int[Tensor, "rows target_len"],
        target_mask: Bool[Tensor, "rows target_len"],
    ) -> Float[Tensor, "rows target_len"]:
        """log p(y_t|x,z,y_<t) of given targets (nats), by teacher forcing; 0 where the mask is False.

        ``rows`` is a multiple of the passages: row r is scored under passage r // (rows / passages). Logits are
        computed at scored positions only and normalised in float32 (float64 for a float64 model).
        """
        logits = self._logits(self._teacher_forced(encoded, target_ids)[target_mask])
        logprobs = -functional.cross_entropy(logits, target_ids[target_mask], reduction="none")
        return logprobs.new_zeros(target_ids.shape).masked_scatter(target_mask, logprobs)

    def last_states(
        self,
        encoded: EncodedPassages,
        target_ids: Int[Tensor, "rows target_len"],
        target_mask: Bool[Tensor, "rows target_len"],
    ) -> Float[Tensor, "rows dim"]:
        """The decoder's state where it would write the last token of each target, the </s>, having read the others."""
        last = target_mask.sum(dim=1) - 1
        return self._teacher_forced(encoded, target_ids)[torch.arange(len(last), device=last.device), last]

    def _teacher_forced(self, encoded: EncodedPassages, target_ids: Tensor) -> Tensor:
        """Decoder states that predict each token of the targets from those before it."""
        start = target_ids.new_full((target_ids.shape[0], 1), self.start_token_id)
        inputs = torch.cat([start, target_ids[:, :-1]], dim=1)
        # Training has no cache, so that gradient checkpointing stays possible.
        cache = EncoderDecoderCache(DynamicCache(), _cache(encoded.cross)) if encoded.cross else None
        return self._run_decoder(inputs, encoded, cache)

    def with_cross_keys(self, encoded: EncodedPassages) -> EncodedPassages:
        """The same passages with the decoder's cross-attention keys computed, once for all later calls."""
        if encoded.cross:
            return encoded
        start = encoded.attention_mask.new_full((encoded.hidden.shape[0], 1), self.start_token_id, dtype=torch.long)
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        self._run_decoder(start, encoded, cache)
        return encoded._replace(cross=_key_values(cache.cross_attention_cache))

    def start(self, encoded: EncodedPassages) -> DecoderStep:
        """The first step: one row for each passage, after the start token."""
        encoded = self.with_cross_keys(encoded)
        start = encoded.attention_mask.new_full((encoded.hidden.shape[0],), self.start_token_id, dtype=torch.long)
        nothing = tuple(attention.ReadKeys(*layer.first(0)) for layer in encoded.cross)
        return self.step(start, DecoderState(encoded, nothing, encoded.attention_mask[:, :0]))

    def step(self, token_ids: Int[Tensor, "rows"], state: DecoderState) -> DecoderStep:
        """Read one more token in each row; ``rows`` is a multiple of the passages."""
        passages = state.encoded.hidden.shape[0]
        own = torch.eye(len(token_ids) // max(passages, 1), dtype=torch.bool, device=token_ids.device)
        history = torch.cat([state.history, own.repeat(passages, 1)], dim=1)
        read = DynamicCache()
        length = state.history.shape[1]
        read.layers.extend(attention.SharedHistory(layer, length, state.length) for layer in state.past)
        cache = EncoderDecoderCache(read, _cache(state.encoded.cross))
        hidden = self._run_decoder(token_ids[:, None], state.encoded, cache, history[:, None, None])
        logprobs = torch.log_softmax(self._logits(hidden[:, -1]), dim=-1)
        past = tuple(layer.past for layer in read.layers)
        return DecoderStep(logprobs, DecoderState(state.encoded, past, history, state.length + 1))

    def _run_decoder(
        self,
        input_ids: Tensor,
        encoded: EncodedPassages,
        cache: EncoderDecoderCache | None,
        history: Tensor | None = None,
    ) -> Tensor:
        output = self.model.get_decoder()(
            input_ids=input_ids,
            attention_mask=history,
            encoder_hidden_states=encoded.hidden,
            encoder_attention_mask=encoded.attention_mask,
            cache=cache,
            use_cache=cache is not None,
        )
        hidden: Tensor = output.last_hidden_state
        return hidden

    def _logits(self, hidden: Tensor) -> Tensor:
        """The output head, as each architecture has it: T5 v1.0 scales its input, BART adds a bias."""
        if getattr(self.config, "scale_decoder_outputs", False):
            hidden = hidden * self.config.d_model**-0.5
        logits: Tensor = self.model.get_output_embeddings()(hidden)
        bias = getattr(self.model, "final_logits_bias", None)
        logits = logits if bias is None else logits.add_(bias[0])
        return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


def _cache(layers: tuple[KeyValues, ...]) -> DynamicCache:
    """A transformers cache around ready tensors, without copying them."""
    cache = DynamicCache()
    for keys, values in layers:
        layer = DynamicLayer()
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values = keys, values
        cache.layers.append(layer)
    return cache


def _key_values(cache: DynamicCache) -> tuple[KeyValues, ...]:
    return tuple(KeyValues(layer.keys, layer.values) for layer in cache.layers)


def _require_embeddings(generator: Generator, path: Path) -> None:
    rows = len(generator.model.get_input_embeddings().weight)
    last = max(generator.tokenizer.backend.get_vocab().values(), default=0)
    if last >= rows:
        raise CheckpointError(
            f"{path / 'tokenizer.json'} has token ids up to {last} and the model {rows} embeddings; save the tokenizer "
            "that belongs to this generator"
        )


def _start_token_id(config: Any) -> int:
    if config.decoder_start_token_id is None:
        raise CheckpointError("config.json has no decoder_start_token_id; decoding cannot start without it")
    return int(config.decoder_start_token_id)


def _one_id(token_id: int | list[int]) -> int:
    return token_id[0] if isinstance(token_id, list) else token_id
