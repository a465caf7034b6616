"""How fast and how large a training step is, beside transformers' RAG on the same weights, passages and questions.

python -m tests.benchmarks.train_step [--repeats 3] [--threads 2] [--family rag-token] [--quick]

A step is forward, backward, clipping and AdamW for 4 questions with 5 passages of about 200 tokens: a BART of 6+6
layers (d 512, vocabulary 5,000) and a DPR question encoder of 3 layers, random and without dropout. Ours is
``Trainer.step`` with its retrieval and texts. Theirs runs twice: with the text round trip of its RagRetriever (question
ids to text, search, strings put together and tokenized again, padded to 300), and with the token ids of the passages
given, padded to the longest. All run in turns in one process, and the median of the rounds' ratios counts: wall time,
so let nothing else run. Losses and gradients are compared before anything is timed, and memory is the peak of a process
of its own for each. A JSON line for each measurement; the last one has the ``ratios``, of both families the worse:
``vs_hf`` and ``vs_hf_without_text`` are how many times as fast ours is, ``peak_memory_vs_...`` its peak over theirs,
``loss_difference`` and ``gradient_difference`` relative, ``text_cached_vs_not`` how many times as fast a batch is laid
out from remembered token ids, and ``time_linearity_n_docs`` and ``time_linearity_questions``
seconds a question and passage at twice as many over those at once.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor

from rag.modeling.inputs import assemble
from rag.modeling.tokenizer import GeneratorTokenizer
from rag.training.loop import Trainer
from tests.benchmarks.ingest import show
from tests.benchmarks.train_step_setup import QUICK, Families, Size, Texts, Theirs, our_trainer, texts, weights

_OURS, _TEXT, _IDS = "ours", "hf", "hf without text"
_MEMORY_STEPS = 2  # the optimizer's state exists from the second on


def compare(family: Families, size: Size, made: Texts, repeats: int) -> dict[str, float]:
    """Time, and equal losses and gradients, of one family."""
    ours, theirs = our_trainer(size, family, made, weights(size)), Theirs(size, family, made, weights(size))
    batch = made.examples[: size.questions]
    theirs.prepare(batch)
    found = {"loss_difference": _loss_difference(ours, theirs, batch)}
    found["gradient_difference"] = _gradient_difference(ours, theirs, batch)
    optimizer = ours.optimizer()
    sides: dict[str, Callable[[], Any]] = {
        _OURS: lambda: ours.step(0, batch, optimizer),
        _TEXT: lambda: theirs.step(batch, with_text=True),
        _IDS: lambda: theirs.step(batch, with_text=False),
    }
    seconds = _in_turns(sides, repeats, family)
    found["vs_hf"] = _ratio(seconds[_TEXT], seconds[_OURS])
    found["vs_hf_without_text"] = _ratio(seconds[_IDS], seconds[_OURS])
    return found


def linearity(size: Size, made: Texts, repeats: int) -> dict[str, float]:
    """Seconds a question and passage with twice the passages, and with twice the questions, over those at once."""
    sides: dict[str, Callable[[], Any]] = {}
    for name, n_docs, questions in (("once", 1, 1), ("n_docs", 2, 1), ("questions", 1, 2)):
        grown = size._replace(n_docs=n_docs * size.n_docs, questions=questions * size.questions)
        trainer = our_trainer(grown, "rag-sequence", made, weights(size))
        sides[name] = _our_step(trainer, grown, made)
    seconds = _in_turns(sides, repeats, "rag-sequence")
    return {f"time_linearity_{name}": _ratio(seconds[name], seconds["once"]) / 2 for name in ("n_docs", "questions")}


def text_gain(size: Size, made: Texts, repeats: int) -> float:
    """Seconds to lay out and tokenize a batch's passages anew over those with token ids at hand."""
    trainer = our_trainer(size, "rag-sequence", made, weights(size))
    tokenizer = trainer.model.generator.tokenizer
    questions = [one.question for one in made.examples[: size.questions]]
    passages = [[(one.title, one.text) for one in made.passages[: size.n_docs]]] * len(questions)

    def lay_out(with_memory: GeneratorTokenizer) -> None:
        assemble(questions, passages, trainer.layout, with_memory, trainer.max_source_tokens)

    forgetful = GeneratorTokenizer(tokenizer.backend, tokenizer.pad_token_id, tokenizer.eos_token_id)
    forgetful.__dict__["splits_at_blanks"] = False
    sides: dict[str, Callable[[], Any]] = {
        "text from memory": lambda: lay_out(tokenizer), "text anew": lambda: lay_out(forgetful)
    }  # fmt: skip
    seconds = _in_turns(sides, 5 * repeats, "rag-sequence")
    return _ratio(seconds["text anew"], seconds["text from memory"])


def peak_memory(family: Families, quick: bool) -> dict[str, float]:
    """The peak in MB of a fresh process for each side that makes a few steps, all at the same time."""
    command = [sys.executable, "-m", "tests.benchmarks.train_step", "--family", family, *(["--quick"] if quick else [])]
    processes = {
        side: subprocess.Popen([*command, "--memory-of", side], stdout=subprocess.PIPE, text=True)
        for side in ((_OURS, _TEXT) if quick else (_OURS, _TEXT, _IDS))
    }
    lines = {side: process.communicate()[0].splitlines() for side, process in processes.items()}
    peaks = {side: float(json.loads(shown[-1])["peak_rss_mb"]) for side, shown in lines.items()}
    show("peak memory", family=family, **{f"{side.replace(' ', '_')}_mb": round(peak) for side, peak in peaks.items()})
    return peaks


def make_steps(side: str, family: Families, size: Size) -> None:
    """Steps of one side and nothing else, then the peak of this process."""
    made = texts(size)
    batch = made.examples[: size.questions]
    if side == _OURS:
        step = _our_step(our_trainer(size, family, made, weights(size)), size, made)
    else:
        theirs = Theirs(size, family, made, weights(size))
        theirs.prepare(batch)

        def step() -> None:
            theirs.step(batch, with_text=side == _TEXT)

    for _ in range(_MEMORY_STEPS):
        step()
    show("peak", side=side, family=family, peak_rss_mb=_peak_bytes() / 1e6)


def _peak_bytes() -> int:
    """Linux: of this program alone; ``getrusage`` still knows the peak of the process that started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="rounds of the sides in turns")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch")
    parser.add_argument("--quick", action="store_true", help="tiny models, one round: whether it works, not how fast")
    parser.add_argument("--memory-of", choices=(_OURS, _TEXT, _IDS), help=argparse.SUPPRESS)
    parser.add_argument("--family", choices=get_args(Families), help="only this one of both")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    size, repeats = (QUICK, 1) if options.quick else (Size(), options.repeats)
    if options.memory_of:
        make_steps(options.memory_of, options.family, size)
        return
    _show_machine(size)
    made = texts(size)
    families: list[Families] = [options.family] if options.family else list(get_args(Families))
    found = [compare(family, size, made, repeats) for family in families]
    ratios = {name: min(one[name] for one in found) for name in ("vs_hf", "vs_hf_without_text")}
    ratios |= {name: max(one[name] for one in found) for name in ("loss_difference", "gradient_difference")}
    peaks = peak_memory(families[0], options.quick)
    ratios |= {
        f"peak_memory_vs_{side.replace(' ', '_')}": peaks[_OURS] / peaks[side] for side in peaks if side != _OURS
    }
    ratios["text_cached_vs_not"] = text_gain(size, made, repeats)
    ratios |= linearity(size, made, max(1, repeats // 2))
    digits = {name: 9 if "difference" in name else 3 for name in ratios}
    show("ratios", ratios={name: round(value, digits[name]) for name, value in ratios.items()})


def _our_step(trainer: Trainer, size: Size, made: Texts) -> Callable[[], Any]:
    optimizer = trainer.optimizer()
    return lambda: trainer.step(0, made.examples[: size.questions], optimizer)


def _in_turns(sides: Mapping[str, Callable[[], Any]], repeats: int, family: str) -> dict[str, list[float]]:
    """The wall seconds of each side in every round, after a first turn that pays for what is made once."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(repeats + 1):
        for name, side in sides.items():
            wall, cpu = time.perf_counter(), time.process_time()
            side()
            seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
            if number:
                show(name, family=family, seconds=seconds, cpu_seconds=cpu_seconds)
                found[name].append(seconds)
    return found


def _ratio(slow: Sequence[float], fast: Sequence[float]) -> float:
    """The median of the rounds' ratios."""
    return statistics.median(one / other for one, other in zip(slow, fast, strict=True))


def _loss_difference(ours: Trainer, theirs: Theirs, batch: Sequence[Any]) -> float:
    """Largest relative difference of an example's loss, with their text round trip and without."""
    with torch.no_grad():
        our_loss = ours.batch_loss(batch).per_example
        their_losses = [theirs.loss(batch, with_text) for with_text in (True, False)]
    worst = max(_difference(our_loss, loss) for loss in their_losses)
    if worst > 1e-4:
        raise SystemExit(
            f"the losses differ: ours {our_loss.tolist()}, theirs {[one.tolist() for one in their_losses]}"
        )
    return worst


def _gradient_difference(ours: Trainer, theirs: Theirs, batch: Sequence[Any]) -> float:
    """Largest relative difference of a tensor's gradient, of all tensors that both sides name."""
    ours.batch_loss(batch).per_example.mean().backward()  # type: ignore[no-untyped-call]
    theirs.loss(batch, with_text=True).mean().backward()  # type: ignore[no-untyped-call]
    our_parts = {"generator": ours.model.generator.model, "question_encoder": ours.model.question_encoder}
    their_parts = {"generator": theirs.model.generator, "question_encoder": theirs.model.question_encoder}
    pairs = []
    for part, module in our_parts.items():
        named = dict(their_parts[part].named_parameters())
        pairs += [(one.grad, named[name].grad) for name, one in module.named_parameters()]
    if any((ours is None) != (theirs is None) for ours, theirs in pairs):
        raise SystemExit("some tensors have a gradient on one side only")
    pairs = [(ours, theirs) for ours, theirs in pairs if ours is not None]
    least = 1e-3 * max(theirs.abs().max().item() for _, theirs in pairs)  # a key's bias has none but rounding
    worst = max(_difference(ours, theirs, least) for ours, theirs in pairs)
    if not 0 < worst < 1e-3:
        raise SystemExit(f"the gradients differ by {worst}, or there are none")
    for module in (*our_parts.values(), theirs.model):
        module.zero_grad(set_to_none=True)
    return worst


def _difference(ours: Tensor, theirs: Tensor, least: float = 1e-6) -> float:
    """Largest difference over the largest value."""
    return ((ours - theirs).abs().max() / theirs.abs().max().clamp(min=least)).item()


def _show_machine(size: Size) -> None:
    show("machine", cpu=torch.cpu.get_capabilities().get("cpu_name", platform.processor()), cores=os.cpu_count(),
         threads=torch.get_num_threads(), load=os.getloadavg()[0], torch=version("torch"),
         transformers=version("transformers"), **size._asdict())  # fmt: skip


if __name__ == "__main__":
    main()
