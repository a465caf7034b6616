"""A generator that ships inside a Python package: FLAN-T5-small as int8 ONNX, turned into a transformers folder.

The ONNX graphs quantise their activations as well, which costs accuracy (cosine of the encoder's output to the
float model about 0.89), and cannot be trained. So only the weights are taken: each is dequantised once, and what
is written is an ordinary folder that ``from_pretrained`` reads.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from rag.errors import CheckpointError
from rag.files import publish

ONNX_FILES = ("encoder.onnx", "decoder.onnx", "tokenizer.json")
Weights = dict[str, Float[np.ndarray, "..."]]

# T5 v1.1 "small". ``tie_word_embeddings`` false is how transformers knows not to scale the decoder's output.
_CONFIG: dict[str, Any] = {
    "architectures": ["T5ForConditionalGeneration"],
    "d_ff": 1024,
    "d_kv": 64,
    "d_model": 512,
    "decoder_start_token_id": 0,
    "dropout_rate": 0.1,
    "dtype": "float32",
    "eos_token_id": 1,
    "feed_forward_proj": "gated-gelu",
    "initializer_factor": 1.0,
    "is_encoder_decoder": True,
    "layer_norm_epsilon": 1e-6,
    "model_type": "t5",
    "num_decoder_layers": 8,
    "num_heads": 6,
    "num_layers": 8,
    "pad_token_id": 0,
    "relative_attention_max_distance": 128,
    "relative_attention_num_buckets": 32,
    "scale_decoder_outputs": False,
    "tie_word_embeddings": False,
    "use_cache": True,
    "vocab_size": 32128,
}
_GENERATION_CONFIG = {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
# The generic class keeps tokenizer.json as it is; the T5 class would rebuild the pre-tokenizer from defaults.
_TOKENIZER_CONFIG = {
    "clean_up_tokenization_spaces": False,
    "eos_token": "</s>",
    "model_max_length": 512,
    "pad_token": "<pad>",
    "tokenizer_class": "PreTrainedTokenizerFast",
    "unk_token": "<unk>",
}
_GRAPH_PREFIXES = {"enc": "encoder", "m": ""}  # how the exporter named the modules of the two graphs


class ConversionReport(NamedTuple):
    """What one conversion wrote."""

    tensors: int
    parameters: int


def is_packaged_t5(path: Path) -> bool:
    """Whether ``path`` is a folder of ONNX graphs to convert, not a transformers folder.

    >>> is_packaged_t5(Path("no/such/folder"))
    False
    """
    return all((path / name).is_file() for name in ONNX_FILES) and not (path / "config.json").exists()


def convert_onnx_t5(source: Path, out: Path) -> ConversionReport:
    """Write the int8 ONNX T5 of folder ``source`` as a transformers folder ``out``; the same bytes every time.

    weight = (q - zero_point) * scale; the matrices of MatMulInteger lie transposed. Every tensor of the model must
    be found exactly once. config.json is written last, so a half-written folder is never taken for a model.
    Raises CheckpointError naming the files or tensors that are missing, double, surplus or of another shape.
    """
    if not is_packaged_t5(source):
        raise CheckpointError(f"{source} holds no ONNX T5; expected the files {', '.join(ONNX_FILES)}")
    weights: Weights = {}
    for graph in ("encoder.onnx", "decoder.onnx"):
        for name, weight in _graph_weights(source / graph):
            _assign(weights, name, weight, graph)
    shared = _one_embedding(weights)
    _check_against_model({**weights, **shared})
    _write_folder(out, weights, _tokenizer_without_limits(source / "tokenizer.json"))
    return ConversionReport(len(weights), sum(weight.size for weight in weights.values()))


def _graph_weights(path: Path) -> Iterator[tuple[str, Float[np.ndarray, "..."]]]:
    """Names as transformers has them, and float32 weights, of one ONNX graph."""
    import onnx
    from onnx import numpy_helper

    try:
        graph = onnx.load(str(path)).graph
    except Exception as error:  # protobuf's DecodeError is not public, and any failure means the same
        raise CheckpointError(f"{path} is not a readable ONNX graph ({error}); reinstall the package") from error
    stored = {tensor.name: tensor for tensor in graph.initializer}

    def read(name: str) -> np.ndarray:
        if name not in stored:
            raise CheckpointError(f"{path} lacks the tensor {name}; reinstall the package")
        return np.asarray(numpy_helper.to_array(stored[name]))

    for name in stored:
        if name.endswith("norm.weight"):
            yield _module_name(name), read(name).astype(np.float32)
        elif name.endswith(".weight_quantized"):  # embeddings
            yield _module_name(name.removesuffix("_quantized")), _dequantise(read, name.removesuffix("_quantized"))
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            # The graph calls the matrix onnx::MatMul_1022; only its node knows the module: /enc/block.0/.../q/MatMul
            module = node.name.strip("/").rpartition("/")[0].replace("/", ".")
            weight = _dequantise(read, node.input[1].removesuffix("_quantized"))
            yield _module_name(f"{module}.weight"), np.ascontiguousarray(weight.T)


def _dequantise(read: Callable[[str], np.ndarray], name: str) -> Float[np.ndarray, "..."]:
    weight = read(f"{name}_quantized").astype(np.float32)
    weight -= read(f"{name}_zero_point").astype(np.float32)
    weight *= read(f"{name}_scale")
    return weight


def _module_name(exported: str) -> str:
    """
    >>> _module_name("enc.block.0.layer.0.SelfAttention.q.weight"), _module_name("m.decoder.final_layer_norm.weight")
    ('encoder.block.0.layer.0.SelfAttention.q.weight', 'decoder.final_layer_norm.weight')
    """
    head, _, rest = exported.partition(".")
    return ".".join(part for part in (_GRAPH_PREFIXES.get(head, head), rest) if part)


def _assign(weights: Weights, name: str, weight: Float[np.ndarray, "..."], where: str) -> None:
    if name in weights:
        raise CheckpointError(f"{where} gives the tensor {name} a second time; this export is not the known one")
    weights[name] = weight


def _one_embedding(weights: Weights) -> Weights:
    """Drop the encoder's copy of the shared embedding, after checking that it is a copy; return the aliases."""
    copy, shared = weights.pop("encoder.embed_tokens.weight", None), weights.get("shared.weight")
    if copy is None or shared is None:
        raise CheckpointError("the graphs lack the token embedding (encoder.embed_tokens.weight, shared.weight)")
    if not np.array_equal(copy, shared):
        raise CheckpointError("encoder and decoder have different token embeddings; T5 shares one")
    return {"encoder.embed_tokens.weight": shared, "decoder.embed_tokens.weight": shared}


def _check_against_model(weights: Mapping[str, Float[np.ndarray, "..."]]) -> None:
    """Raise CheckpointError unless the tensors are exactly those of the transformers model, in their shapes."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    with torch.device("meta"):
        model = T5ForConditionalGeneration(T5Config(**_CONFIG))
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    problems = {
        "missing": sorted(wanted.keys() - weights.keys()),
        "surplus": sorted(weights.keys() - wanted.keys()),
        "of another shape": sorted(n for n, w in weights.items() if n in wanted and w.shape != wanted[n]),
        "not finite": sorted(n for n, w in weights.items() if not np.isfinite(w).all()),
    }
    found = "; ".join(f"{what}: {', '.join(names)}" for what, names in problems.items() if names)
    if found:
        raise CheckpointError(f"the ONNX graphs do not hold a FLAN-T5-small: {found}")


def _tokenizer_without_limits(path: Path) -> str:
    """tokenizer.json without the 48-token truncation and the padding of the packager's own task."""
    try:
        tokenizer = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckpointError(f"{path} is not a tokenizer.json ({error}); reinstall the package") from error
    return json.dumps({**tokenizer, "truncation": None, "padding": None}, ensure_ascii=False)


def _write_folder(out: Path, weights: Weights, tokenizer: str) -> None:
    from safetensors.numpy import save_file

    out.mkdir(parents=True, exist_ok=True)
    temporary = out / "model.safetensors.tmp"
    save_file(weights, temporary, metadata={"format": "pt"})
    publish(temporary, out / "model.safetensors")
    files = {
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": _json(_TOKENIZER_CONFIG),
        "generation_config.json": _json(_GENERATION_CONFIG),
        "config.json": _json(_CONFIG),
    }
    for name, content in files.items():
        temporary = out / f"{name}.tmp"
        temporary.write_text(content, encoding="utf-8")
        publish(temporary, out / name)


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, sort_keys=True) + "\n"
