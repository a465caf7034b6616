"""How many times as fast as transformers' RAG classes we decode, with the same weights and the same inputs.

python -m tests.benchmarks.decode [--questions 8] [--docs 5 10] [--threads 2] [--init-std 0.06] [--profile] [--quick]

A BART of 6+6 layers, d_model 512 and 5,000 tokens with random weights; passages of 200 random tokens, no padding; 4
beams and 16 new tokens in float32. Theirs are RagSequenceForGeneration.generate, whose only mode is the thorough one,
and RagTokenForGeneration.generate. All run in turns in one process, ours first, and wall time counts: let nothing else
run. With ``--init-std`` 0.06 passages propose different answers, as real ones do; with BART's own 0.02 they agree,
which spares theirs most of its rescoring.

A JSON line for each measurement; the last one has the ``ratios``, each the worst over ``--docs``: their seconds over
ours, and ``bf16_vs_f32``, our seconds in float32 over those in bfloat16 (the worse of RAG-Token and thorough). Before
it: the answers that agree (``same``), ours with the higher probability by the paper's formula (``ours_better``) and
theirs (``theirs_better``), the growth of the cost of a passage, and peak memory.

Where the factor comes from: theirs encodes all passages again for every candidate that it scores, gives each beam
a copy of its passage's cross-attention keys, and puts all copies in order at every step. Ours encodes a passage once
and computes its keys once for all beams and candidates; beams add to one store of keys and a mask says which are
theirs; the search of all questions and passages is one batch, which finished questions leave; and a candidate is
scored only under passages whose own search has not scored it. Thorough scores every candidate under every passage:
where all passages propose different ones, its cost a passage grows with n_docs, ours and theirs.
"""

import argparse
import os
import platform
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from jaxtyping import Float, Int
from torch.profiler import ProfilerActivity, profile

from rag.decoding import sequence_level, token_level
from rag.decoding.hypotheses import BeamOptions, Hypotheses
from rag.modeling.generator import Generator
from rag.modeling.marginalize import marginalize_sequence, marginalize_token, prior_logprobs
from tests.benchmarks.ingest import show
from tests.support.tiny_models import bart_tokenizer, hf_dpr_question_encoder, write_model

_SEED = 0
_MODES = {"thorough": sequence_level.thorough, "fast": sequence_level.fast, "token": token_level.beam}


class Setting(NamedTuple):
    """Sizes of the model and of one measurement."""

    layers: int = 6
    d_model: int = 512
    vocabulary: int = 5000
    questions: int = 8
    passage_tokens: int = 200
    beams: int = 4
    new_tokens: int = 16
    init_std: float = 0.06


class Inputs(NamedTuple):
    """Passages as token ids, question-major, and what the retriever thinks of them."""

    ids: Int[torch.Tensor, "passages tokens"]
    scores: Float[torch.Tensor, "questions n_docs"]


class Timed(NamedTuple):
    """What was found, and its wall and CPU seconds."""

    found: Any
    seconds: float
    cpu_seconds: float


def random_bart(setting: Setting) -> Any:
    """A BART that may write anything at any place."""
    torch.manual_seed(_SEED)
    heads = max(1, setting.d_model // 64)
    config = transformers.BartConfig(
        vocab_size=setting.vocabulary, d_model=setting.d_model, encoder_layers=setting.layers,
        decoder_layers=setting.layers, encoder_attention_heads=heads, decoder_attention_heads=heads,
        encoder_ffn_dim=4 * setting.d_model, decoder_ffn_dim=4 * setting.d_model, init_std=setting.init_std,
        max_position_embeddings=max(setting.passage_tokens, setting.new_tokens) + 2, bos_token_id=0, pad_token_id=1,
        eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=None,
    )  # fmt: skip
    return transformers.BartForConditionalGeneration(config).eval()


def random_inputs(setting: Setting, questions: int, n_docs: int) -> Inputs:
    """The same for the same sizes."""
    random = torch.Generator().manual_seed(_SEED)
    ids = torch.randint(4, setting.vocabulary, (questions * n_docs, setting.passage_tokens), generator=random)
    return Inputs(ids, torch.randn(questions, n_docs, generator=random))


def our_generator(model: Any, folder: Path, dtype: torch.dtype) -> Generator:
    """Ours from the files of the same weights; nothing is forced, because theirs forces nothing."""
    generator = Generator.load(write_model(model, bart_tokenizer(), folder), dtype)
    generator.first_token_ids = ()
    return generator


def ours(generator: Generator, mode: str, inputs: Inputs, setting: Setting) -> list[Hypotheses]:
    """Encode and search."""
    with torch.inference_mode():
        encoded = generator.encode(inputs.ids, torch.ones_like(inputs.ids, dtype=torch.bool))
        options = BeamOptions(setting.beams, setting.new_tokens)
        return _MODES[mode](generator, encoded, prior_logprobs(inputs.scores), options)


def their_rag(cls: Any, model: Any, n_docs: int) -> Any:
    """One of their two classes around the same weights."""
    encoder = hf_dpr_question_encoder()
    config = transformers.RagConfig.from_question_encoder_generator_configs(encoder.config, model.config, n_docs=n_docs)
    return cls(config=config, question_encoder=encoder, generator=model).eval()


def theirs(rag: Any, inputs: Inputs, setting: Setting) -> list[tuple[int, ...]]:
    """Their best answers, without the start token and the padding."""
    output = rag.generate(
        context_input_ids=inputs.ids, context_attention_mask=torch.ones_like(inputs.ids), doc_scores=inputs.scores,
        num_beams=setting.beams, max_length=setting.new_tokens + 1, min_length=0, do_sample=False,
        early_stopping=False, length_penalty=1.0,
    )  # fmt: skip
    end, pad = rag.config.generator.eos_token_id, rag.config.generator.pad_token_id
    rows = [row[1:] for row in output.tolist()]
    return [
        tuple(row[: row.index(end) + 1]) if end in row else tuple(token for token in row if token != pad)
        for row in rows
    ]


def agreement(generator: Generator, family: str, inputs: Inputs, mine: list[Any], other: list[Any]) -> dict[str, int]:
    """How many best answers are the same, and whose has the higher probability where they are not.

    RAG-Token's compete by log-probability a token, as both searches rank them.
    """
    counts = {"same": 0, "ours_better": 0, "theirs_better": 0}
    n_docs = inputs.scores.shape[1]
    for number, (one, ids) in enumerate(zip(mine, other, strict=True)):
        rows = slice(number * n_docs, (number + 1) * n_docs)
        with torch.inference_mode():
            encoded = generator.encode(inputs.ids[rows], torch.ones_like(inputs.ids[rows], dtype=torch.bool))
            own, another = (
                _exact(generator, family, encoded, inputs.scores[[number]], each) for each in (one[0].token_ids, ids)
            )
        verdict = "same" if one[0].token_ids == ids else "ours_better" if own >= another else "theirs_better"
        counts[verdict] += 1
    return counts


def beside_theirs(setting: Setting, n_docs: int, repeats: int, folder: Path) -> dict[str, float]:
    """All modes in turns, in float32 and bfloat16; the median ratio of the rounds."""
    model, inputs = random_bart(setting), random_inputs(setting, setting.questions, n_docs)
    float32 = our_generator(model, folder / "model", torch.float32)
    bfloat16 = our_generator(model, folder / "model", torch.bfloat16)
    runs: dict[str, Callable[[], Any]] = {}
    for mode in _MODES:
        runs[f"ours {mode}"] = lambda mode=mode: ours(float32, mode, inputs, setting)  # type: ignore[misc]
        runs[f"ours {mode} bf16"] = lambda mode=mode: ours(bfloat16, mode, inputs, setting)  # type: ignore[misc]
    for family, cls in (
        ("token", transformers.RagTokenForGeneration),
        ("sequence", transformers.RagSequenceForGeneration),
    ):
        rag = their_rag(cls, model, n_docs)
        runs[f"theirs {family}"] = lambda rag=rag: theirs(rag, inputs, setting)  # type: ignore[misc]
    found: dict[str, list[Timed]] = {name: [] for name in runs}
    ours(float32, "token", random_inputs(setting, 1, n_docs), setting)  # pays for what is loaded once
    ours(bfloat16, "token", random_inputs(setting, 1, n_docs), setting)
    for _ in range(repeats):
        for name, run in runs.items():
            timed = _timed(run)
            found[name].append(timed)
            show(name, n_docs=n_docs, seconds=timed.seconds, cpu_seconds=timed.cpu_seconds, peak_rss_mb=_peak_mb())
    _show_agreement(float32, inputs, {name: timed[0].found for name, timed in found.items()})
    return {
        "sequence_thorough_vs_hf": _ratio(found["theirs sequence"], found["ours thorough"]),
        "sequence_fast_vs_hf": _ratio(found["theirs sequence"], found["ours fast"]),
        "token_beam_vs_hf": _ratio(found["theirs token"], found["ours token"]),
        "bf16_vs_f32": min(_ratio(found[f"ours {mode}"], found[f"ours {mode} bf16"]) for mode in ("thorough", "token")),
    }


def growth(setting: Setting, folder: Path) -> Iterator[tuple[str, float]]:
    """Seconds a passage at four times the questions or passages over those at once; 1 is linear."""
    generator = our_generator(random_bart(setting), folder / "growth", torch.float32)
    base = max(1, setting.questions // 4)
    for mode in _MODES:
        for what, sizes in {"questions": [(1, 1), (2, 1), (4, 1)], "n_docs": [(1, 1), (1, 2), (1, 4)]}.items():
            costs = []
            for more_questions, more_docs in sizes:
                inputs = random_inputs(setting, base * more_questions, 5 * more_docs)
                timed = _timed(lambda mode=mode, inputs=inputs: ours(generator, mode, inputs, setting))  # type: ignore[misc]
                costs.append(timed.cpu_seconds / len(inputs.ids))
            show("growth", mode=mode, of=what, cpu_seconds_a_passage=[round(cost, 4) for cost in costs])
            yield f"{mode}_growth_in_{what}", costs[-1] / costs[0]


def show_profile(setting: Setting, n_docs: int, folder: Path) -> None:
    """The operations that take most of our CPU time, in milliseconds of their own."""
    generator = our_generator(random_bart(setting), folder / "profile", torch.float32)
    inputs = random_inputs(setting, setting.questions, n_docs)
    for mode in _MODES:
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            ours(generator, mode, inputs, setting)
        operations = sorted(profiler.key_averages(), key=lambda one: -one.self_cpu_time_total)[:10]
        show(
            "profile",
            mode=mode,
            n_docs=n_docs,
            ms={one.key: round(one.self_cpu_time_total / 1e3) for one in operations},
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=8)
    parser.add_argument("--docs", type=int, nargs="+", default=[5, 10], help="passages a question")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--init-std", type=float, default=0.06, help="spread of the random weights")
    parser.add_argument("--repeats", type=int, default=1, help="rounds of all modes in turns")
    parser.add_argument("--profile", action="store_true", help="only show where our time goes")
    parser.add_argument("--quick", action="store_true", help="a tiny model: whether it works, not how fast it is")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    setting = Setting(questions=options.questions, init_std=options.init_std)
    if options.quick:
        setting = Setting(2, 64, 50, questions=2, passage_tokens=20, new_tokens=6, init_std=0.3)
    _show_machine()
    with tempfile.TemporaryDirectory() as folder:
        if options.profile:
            for n_docs in options.docs:
                show_profile(setting, n_docs, Path(folder))
            return
        docs = [2] if options.quick else options.docs
        found = [beside_theirs(setting, n_docs, options.repeats, Path(folder)) for n_docs in docs]
        ratios: dict[str, float] = {name: min(each[name] for each in found) for name in found[0]}
        ratios |= dict(growth(setting, Path(folder)))
    show("ratios", setting=setting._asdict(), docs=docs, ratios={name: round(each, 3) for name, each in ratios.items()})


def _exact(generator: Generator, family: str, encoded: Any, scores: torch.Tensor, ids: tuple[int, ...]) -> float:
    targets, n_docs = torch.tensor([ids]), scores.shape[1]
    mask = torch.ones_like(targets, dtype=torch.bool)
    tokens = generator.token_logprobs(encoded, targets.expand(n_docs, -1), mask.expand(n_docs, -1))[None]
    if family == "sequence":
        return float(marginalize_sequence(tokens, prior_logprobs(scores), mask))
    return float(marginalize_token(tokens, prior_logprobs(scores), mask)) / len(ids)


def _show_agreement(generator: Generator, inputs: Inputs, found: dict[str, Any]) -> None:
    for mode in _MODES:
        family = "token" if mode == "token" else "sequence"
        best, n_docs = [each[0].token_ids for each in found[f"ours {mode}"]], inputs.scores.shape[1]
        same = sum(each[0].token_ids == ids for each, ids in zip(found[f"ours {mode} bf16"], best, strict=True))
        candidates = statistics.mean(map(len, found[f"ours {mode}"]))
        counts = agreement(generator, family, inputs, found[f"ours {mode}"], found[f"theirs {family}"])
        show(
            "agreement",
            mode=mode,
            n_docs=n_docs,
            questions=len(best),
            **counts,
            same_in_bf16=same,
            candidates=candidates,
        )


def _timed(run: Callable[[], Any]) -> Timed:
    wall, cpu = time.perf_counter(), time.process_time()
    found = run()
    return Timed(found, time.perf_counter() - wall, time.process_time() - cpu)


def _ratio(slow: Sequence[Timed], fast: Sequence[Timed]) -> float:
    return statistics.median(one.seconds / other.seconds for one, other in zip(slow, fast, strict=True))


def _peak_mb() -> int:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3))


def _show_machine() -> None:
    show("machine", cpu=torch.cpu.get_capabilities().get("cpu_name", platform.processor()), cores=os.cpu_count(),
         threads=torch.get_num_threads(), load=os.getloadavg()[0], python=platform.python_version(),
         torch=version("torch"), transformers=version("transformers"))  # fmt: skip


if __name__ == "__main__":
    main()
