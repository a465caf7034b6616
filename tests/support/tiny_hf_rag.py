"""Tiny random checkpoints in exactly the format that transformers' RAG classes write, and their loss."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import RagConfig, RagSequenceForGeneration, RagTokenForGeneration
from transformers.models.dpr import DPRQuestionEncoder

from rag.modeling.models import Family, RagModel, score_passages
from rag.retrieval.encoders import Encoder
from tests.support.tiny_encoders import write_dpr
from tests.support.tiny_models import FAMILIES

N_DOCS, DIM = 3, 8
CLASSES: dict[Family, Any] = {"rag-sequence": RagSequenceForGeneration, "rag-token": RagTokenForGeneration}
PASSAGES = [("lima", "the capital of peru is lima"), ("paris", "the capital"), ("king", "who is the king of france")]
_TOKENIZER_CONFIG = '{"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>", "pad_token": "<pad>"}'


def write_hf_rag(folder: Path, family: Family = "rag-sequence", kind: str = "bart", **options: Any) -> Any:
    """Write one with ``save_pretrained``, tokenizers beside it; returns the model that was saved.

    ``options`` are of its RagConfig; ``max_shard_size`` makes several weight files.
    """
    shards = {"max_shard_size": options.pop("max_shard_size")} if "max_shard_size" in options else {}
    made = FAMILIES[kind]
    generator = made.model(3)
    generator.config.bos_token_id = 0 if kind.startswith(("bart", "mbart")) else None
    head = generator.lm_head.weight.detach().clone()
    tokenizers = folder / "question_encoder_tokenizer"
    encoder = DPRQuestionEncoder.from_pretrained(write_dpr(tokenizers, question=True, seed=4))
    config = RagConfig.from_question_encoder_generator_configs(
        encoder.config, generator.config, **{"n_docs": N_DOCS, "max_combined_length": 40, **options}
    )
    model = CLASSES[family](config=config, question_encoder=encoder, generator=generator).eval()
    if kind == "flan-t5":  # theirs ties the head in silence when the parts are put together
        model.generator.lm_head.weight = torch.nn.Parameter(head)
    model.save_pretrained(folder, **shards)
    forced = generator.generation_config.forced_bos_token_id
    if forced is not None:
        generator.generation_config.to_json_file(folder / "generation_config.json")
    for name in ("model.safetensors", "config.json"):
        (tokenizers / name).unlink()
    _write_tokenizer(made.tokenizer(), folder / "generator_tokenizer")
    return model


def _write_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(_TOKENIZER_CONFIG, encoding="utf-8")


class Batch:
    """Two questions with three passages each and targets of two lengths, for either kind of model."""

    questions = ("who is the king", "the capital of peru")

    def __init__(self, model: RagModel, encoder: Encoder) -> None:
        from rag.modeling.inputs import assemble

        random = torch.Generator().manual_seed(5)
        self.vectors = torch.randn(2, N_DOCS, DIM, generator=random)
        layout = "{title} / {text} // {question}"
        self.inputs = assemble(self.questions, [PASSAGES] * 2, layout, model.generator.tokenizer, 40)
        self.targets = model.generator.targets(["lyon paris", "a"])
        self.asked = encoder.tokenize_questions(self.questions)

    def our_loss(self, model: RagModel, encoder: Encoder) -> Tensor:
        """-log p(y|x) of each question."""
        scores = score_passages(encoder.embed_questions(self.asked), self.vectors)
        return model.loss(self.inputs, scores, self.targets.ids, self.targets.mask).per_example

    def their_loss(self, model: Any) -> Tensor:
        """The same of a transformers model."""
        generator = model.config.generator
        start = torch.full((2, 1), generator.decoder_start_token_id)
        labels = torch.cat([start, self.targets.ids.where(self.targets.mask, generator.pad_token_id)], dim=1)
        output = model(
            context_input_ids=self.inputs.input_ids.flatten(0, 1),
            context_attention_mask=self.inputs.attention_mask.flatten(0, 1).long(),
            doc_scores=score_passages(model.question_encoder(**self.asked)[0], self.vectors),
            labels=labels,
            reduce_loss=False,
        )
        loss: Tensor = output.loss
        return loss
