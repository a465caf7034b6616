"""Which arithmetic encodes passages: bfloat16 where the machine computes it and real passages come out the same."""

from collections.abc import Sequence
from typing import NamedTuple, get_args

import numpy as np
import torch

from rag.errors import ConfigError
from rag.retrieval.encoders import ComputedPrecision, Encoder

MIN_COSINE = 0.999  # of a vector in bfloat16 to the one in float32, for the worst row of the sample
_SAMPLE_ROWS = 64


class PrecisionChoice(NamedTuple):
    """The arithmetic that passages are encoded in."""

    precision: ComputedPrecision
    worst_cosine: float | None  # of bfloat16 to float32 over the sample; None: not measured, for nothing asked for it


def native_bfloat16(device: str) -> bool:
    """Whether the device has instructions for bfloat16; elsewhere it is computed by way of float32, and slower.

    >>> native_bfloat16("meta")
    False
    """
    match torch.device(device).type:
        case "cpu":
            flags = torch.cpu.get_capabilities()
            return any(flags.get(name, False) for name in ("avx512_bf16", "amx_bf16"))
        case "cuda":
            return torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)
        case _:
            return False


def resolve_precision(encoder: Encoder, titles: Sequence[str], texts: Sequence[str]) -> PrecisionChoice:
    """The arithmetic for passages like these, as ``encoder.precision`` of the configuration asks for it.

    "auto" is bfloat16 if the encoder's device has it (``native_bfloat16``) and the worst of up to 64 rows, spread
    evenly over those given, has a cosine of at least 0.999 to float32; else float32. Raises ConfigError where
    bfloat16 is asked for and the cosine is lower, and ValueError without any passage.
    """
    wanted = encoder.config.precision
    if wanted == "float32" or (wanted == "auto" and not native_bfloat16(str(encoder.device))):
        return PrecisionChoice("float32", None)
    cosine = _worst_cosine(encoder, titles, texts)
    if cosine >= MIN_COSINE:
        return PrecisionChoice("bfloat16", cosine)
    if wanted == "bfloat16":
        raise ConfigError(
            f"in bfloat16 {encoder.encoder_id} gives vectors with a cosine of only {cosine:.5f} to float32 (at least "
            f'{MIN_COSINE} is needed); set encoder.precision = "float32" or "auto"'
        )
    return PrecisionChoice("float32", cosine)


def _worst_cosine(encoder: Encoder, titles: Sequence[str], texts: Sequence[str]) -> float:
    if not texts:
        raise ValueError("no passages to compare bfloat16 with float32 on; give some of those that will be encoded")
    rows = np.linspace(0, len(texts) - 1, min(len(texts), _SAMPLE_ROWS)).round().astype(int)
    sample = [titles[row] for row in rows], [texts[row] for row in rows]
    full, half = (
        encoder.at(precision).encode_passages(*sample).astype(np.float64) for precision in get_args(ComputedPrecision)
    )
    lengths = np.linalg.norm(full, axis=1) * np.linalg.norm(half, axis=1)
    return float(((full * half).sum(axis=1) / np.maximum(lengths, np.finfo(np.float64).tiny)).min())
