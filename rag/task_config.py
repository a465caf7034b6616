"""A task of a study, its files and how its answers are decoded, as a frozen model; part of ``config``."""

from collections.abc import Iterable
from typing import Literal

from pydantic import Field, model_validator

from rag.records import TaskName
from rag.source_config import Frozen

# Keys of a task that one kind of decoding alone heeds.
_ONLY_FOR = {
    "beam": ("num_beams", "length_penalty", "early_stopping", "sequence_decoding"),
    "sample": ("samples", "temperature", "top_k", "top_p", "sampling_seed"),
}
_OF_TEXTS = ("min_new_tokens", "no_repeat_ngram_size")  # and not of labels; max_new_tokens is in many a study


class TaskConfig(Frozen):
    """One task: its files, in their real format, and how its answers are decoded."""

    reader: TaskName
    train: str | None = None
    train_answers: Literal["all", "first"] = "all"  # one training pair per (question, answer), as in the paper
    dev: str | None = None
    test: str
    answers: Literal["strings", "patterns"] = "strings"  # patterns: regular expressions, as CuratedTREC's
    expected_test_rows: int | None = None
    prefix: str = ""  # put before the question for the generator only; the retriever sees the raw question
    decoding: Literal["beam", "sample"] = "beam"  # sample: the best of some random answers; not for RAG-Sequence
    num_beams: int = Field(1, ge=1)  # greedy for question answering, 4 beams for generation
    length_penalty: float = Field(
        1.0, allow_inf_nan=False
    )  # beams compete by log-probability / length ** length_penalty
    early_stopping: bool = False  # end a search at its first num_beams answers, whatever might still beat them
    min_new_tokens: int = Field(0, ge=0)  # before the end of an answer
    max_new_tokens: int = Field(32, ge=1)
    no_repeat_ngram_size: int = Field(0, ge=0)  # no n-gram of so many tokens twice in an answer; 0 allows all
    sequence_decoding: Literal["thorough", "fast"] = "thorough"
    samples: int = Field(1, ge=1)  # answers drawn for each question, of which the most probable is given
    temperature: float = Field(1.0, gt=0, allow_inf_nan=False)
    top_k: int = Field(0, ge=0)  # 0: all tokens may be drawn
    top_p: float = Field(1.0, gt=0, le=1)
    sampling_seed: int = 0  # another number, other draws
    labels: dict[str, str] = Field({})  # fever: label -> the word that stands for it; one token each
    # fever: token: the label whose word is the most probable next one (section 3.4 of the paper). head: a linear layer
    # over the decoder's last state, once it has read the claim again, trained with the model (its appendix E).
    classification: Literal["token", "head"] = "token"
    calibrate: bool = False  # fever: fit a temperature of the labels' probabilities on the dev split; no label changes

    @model_validator(mode="after")
    def _fever_has_labels(self) -> "TaskConfig":
        if (self.reader == "fever") != bool(self.labels):
            raise ValueError("labels belong to fever tasks and to no other; fever needs a word for every label")
        if self.classification == "head" and not self.labels:
            raise ValueError("classification = 'head' is for a task with labels; give labels or leave it out")
        if self.calibrate and not (self.labels and self.dev):
            raise ValueError(
                "calibrate fits probabilities of labels on the dev split; give labels and dev, or leave it out"
            )
        if self.answers == "patterns" and self.reader != "open-qa":
            raise ValueError(f"answers = 'patterns' is for open-qa only, and this is {self.reader!r}; leave it out")
        if self.answers == "patterns" and self.train:
            raise ValueError("train goes with answers as strings, for a pattern is no text to learn; leave train out")
        return self

    @model_validator(mode="after")
    def _decoding_heeds_what_is_set(self) -> "TaskConfig":
        set_keys = self._not_default(("decoding", *_OF_TEXTS, *(key for keys in _ONLY_FOR.values() for key in keys)))
        if self.labels and set_keys:
            raise ValueError(f"a task with labels is answered by its most probable label; leave {set_keys[0]} out")
        for decoding, keys in _ONLY_FOR.items():
            changed = self._not_default(keys)
            if changed and decoding != self.decoding:
                raise ValueError(
                    f"{changed[0]} is heeded with decoding = {decoding!r} only, and this is {self.decoding!r}; "
                    "leave one of them out"
                )
        if self.min_new_tokens >= self.max_new_tokens:
            raise ValueError(
                f"min_new_tokens = {self.min_new_tokens} leaves no room to end an answer within max_new_tokens = "
                f"{self.max_new_tokens}; set it lower"
            )
        return self

    def _not_default(self, keys: Iterable[str]) -> list[str]:
        return [key for key in keys if getattr(self, key) != type(self).model_fields[key].default]
