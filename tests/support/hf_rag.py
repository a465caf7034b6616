"""Hugging Face's RAG classes around the tiny generators of ``tiny_models``."""

from typing import Any

import torch
from transformers import RagConfig

from tests.support.tiny_models import hf_bart, hf_dpr_question_encoder, hf_t5


def hf_rag(cls: Any, kind: str, seed: int, n_docs: int = 3) -> Any:
    """Theirs, with the generator that ``tiny_generator`` writes for the same kind and seed."""
    generator = hf_bart(seed) if kind == "bart" else hf_t5(seed, tied=kind == "t5")
    generator.config.bos_token_id = 0 if kind == "bart" else None  # theirs asks every generator for it
    head = generator.lm_head.weight.detach().clone()
    encoder = hf_dpr_question_encoder(seed)
    config = RagConfig.from_question_encoder_generator_configs(encoder.config, generator.config, n_docs=n_docs)
    model = cls(config=config, question_encoder=encoder, generator=generator).eval()
    if kind == "flan-t5":  # theirs ties the head in silence when the parts are put together
        assert torch.equal(model.generator.lm_head.weight, model.generator.shared.weight)
        model.generator.lm_head.weight = torch.nn.Parameter(head)
    return model
