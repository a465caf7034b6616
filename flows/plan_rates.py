"""What this machine does in a second, measured on samples: cutting, encoding, indexing and exact search."""

import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import psutil

from flows.paths import resolve_path
from flows.settings import Settings, compute_device
from rag.config import Bm25Config, EncoderConfig, IndexConfig, IndexKind, PassageConfig
from rag.records import Passage
from rag.retrieval.estimate import Bm25Rate, BuildSample, EncodingRate

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float

    from rag.corpus.estimate import IngestRates
    from rag.retrieval.encoders import Encoder

T = TypeVar("T")
# A real dump of 6 MB that installs as a package: what one second of work does is measured on it.
_SAMPLE = "package:gensim/test/test_data/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
_SAMPLED, _STRETCH = 4096, 256  # passages at most, and how many of them lie one after the other
_ENCODED = 160  # of those
_PAGE = 5  # passages in a row that are alike
_LONG_SECONDS = 2.0  # of a build
_LONG_ENCODING_SECONDS = 6.0
_USUAL_ENCODER_BYTES = 1_340_000_000  # a process with torch, transformers and a base-size model
_ONE_BATCH = 8  # passages, for a base-size model takes a third of a second for each
_LIKE_TOKENS = r"\w{1,8}|[^\w\s]"  # cuts Wikipedia's passages into as many pieces as BERT's vocabulary does, to 1 %
_SEARCHED = (65_536, 200)  # vectors, questions


class SamplePassages:
    """Real passages, cut with the study's options, by row number."""

    def __init__(self, passages: list[Passage]) -> None:
        self._passages = passages

    def __len__(self) -> int:
        return len(self._passages)

    def rows(self, rows: Sequence[int]) -> list[Passage]:
        """The passages at these rows."""
        return [self._passages[row] for row in rows]


class Cut(NamedTuple):
    """The sample dump as passages, and how fast that was."""

    rates: "IngestRates"
    passages: SamplePassages


@cache
def measure_cutting(config: PassageConfig, workers: int) -> Cut:
    """Cut a small real dump into passages with the study's options.

    Raises ConfigError where the package with the dump is not installed.
    """
    from rag.corpus.estimate import IngestRates
    from rag.corpus.ingest.source import SourceSpec, ingest

    sample = resolve_path(_SAMPLE, study_folder=Path(), demo=None)
    spec = SourceSpec("sample", (sample,), "mediawiki", None, None, None)
    seconds = []
    for _ in range(2):  # the first time pays for what is loaded once
        with tempfile.TemporaryDirectory() as scratch:
            started = time.perf_counter()
            report = ingest(spec, config, Path(scratch))
            seconds.append(time.perf_counter() - started)
            stored = sum(file.stat().st_size for file in Path(scratch).glob("passages-*.parquet"))
            passages = sample_passages(Path(scratch))
    rates = IngestRates(_xml_bytes(sample) / min(seconds), stored / max(report.passages, 1), workers)
    return Cut(rates, passages)


def encoding_rate(
    config: EncoderConfig, folder: Path | None, settings: Settings, passages: SamplePassages | None
) -> EncodingRate:
    """What encoding takes with the study's own encoder, precision and lengths.

    Without the encoder's ``folder`` or a sample of ``passages`` nothing is measured, and the memory is that of a
    base-size model; ``base_size_rate`` is for one that is known to be such. Several processes share the cores, or a
    GPU, and are as fast as the one that is measured; of several GPUs, and of other machines, nothing is known here.
    """
    processes = settings.encoders or 1
    if not folder or not passages:
        return EncodingRate(None, processes * _USUAL_ENCODER_BYTES)
    from rag.retrieval.encoders import Encoder
    from rag.retrieval.precision import resolve_precision

    encoder = Encoder.load(folder, config)
    encoder.module.to(compute_device(settings))
    chosen = passages.rows(range(0, len(passages), max(1, len(passages) // _ENCODED)))
    few = chosen[::8]
    encoder = encoder.at(resolve_precision(encoder, [one.title for one in few], [one.text for one in few]).precision)
    if len(chosen) > _LONG_ENCODING_SECONDS * _encode(encoder, few):
        chosen = chosen[::4]
    rate = max(_encode(encoder, chosen) for _ in range(2))  # kernels are made when a shape of batch is first seen
    return EncodingRate(rate, processes * psutil.Process().memory_info().rss)


@cache
def base_size_rate(config: EncoderConfig, device: str, processes: int, passages: SamplePassages) -> EncodingRate:
    """What encoding takes with a BERT of base size (12 layers, 768 dimensions) whose weights are random.

    Speed does not depend on weights, so this stands for an encoder of that size that is not on this machine. bfloat16
    is taken where the study allows it and the device has it: whether it is exact enough, only real weights say.
    """
    import torch

    from rag.retrieval.precision import native_bfloat16

    encoder, on_cpu = _random_encoder(config), device == "cpu"
    fast = config.precision == "bfloat16" or (config.precision == "auto" and native_bfloat16(device))
    encoder.module.to(device, torch.bfloat16 if fast else torch.float32)
    chosen = passages.rows(range(0, len(passages), max(1, len(passages) // (_ONE_BATCH if on_cpu else _ENCODED))))
    _encode(encoder, chosen[::8])
    side_by_side = torch.get_num_threads() if on_cpu else 1  # batches; one thread computes each
    rate = side_by_side * _encode(encoder, chosen)
    return EncodingRate(rate, processes * _USUAL_ENCODER_BYTES, is_like=True)


def _random_encoder(config: EncoderConfig) -> "Encoder":
    """An encoder of base size that was never trained, with a tokenizer that gives passages their usual length."""
    import torch
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    from rag.retrieval.encoders import Encoder

    tokenizer = Tokenizer(models.WordLevel({"[PAD]": 0, "[UNK]": 1}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_LIKE_TOKENS), "removed", invert=True)
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = BertModel(BertConfig())
    return Encoder(module, wrapped, config)


@cache
def measure_build(kind: IndexKind, config: IndexConfig, dim: int) -> tuple[BuildSample, ...]:
    """Small indexes of the kind, with the study's options, until one takes long."""
    from rag.retrieval.estimate import sample_builds
    from rag.retrieval.index_build import build_index

    builds = sample_builds(kind)
    vectors = like_passages(max(rows for rows, _ in builds), dim)
    build_index(vectors[:_STRETCH], config, kind=kind)  # the first time pays for what is loaded once
    samples: list[BuildSample] = []
    for rows, nlist in builds:
        clock = _PassClock()
        started = time.perf_counter()
        build_index(vectors[:rows], config.model_copy(update={"nlist": nlist}), kind=kind, progress=clock)
        learning = time.perf_counter() - started - clock.seconds
        samples.append(BuildSample(rows, clock.seconds, learning, nlist))
        if not nlist and len(samples) > 1 and clock.seconds > _LONG_SECONDS:
            break
    return tuple(samples)


class _PassClock:
    """A progress callable that adds up the time of the passes."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, blocks: Iterable[T]) -> Iterator[T]:
        started = time.perf_counter()
        yield from blocks
        self.seconds += time.perf_counter() - started


@cache
def measure_exact_search(dim: int) -> float:
    """Inner products a second of exact search over stored vectors."""
    import numpy as np

    from rag.retrieval.recall import exact_search

    rows, questions = _SEARCHED
    vectors = like_passages(rows, dim)
    seconds = []
    for part in (vectors[: rows // 2], vectors):  # the difference: the first blocks take longer than all others
        started = time.perf_counter()
        exact_search(vectors[:questions].astype(np.float32), part, 100)
        seconds.append(time.perf_counter() - started)
    return rows // 2 * questions / max(seconds[1] - seconds[0], seconds[1] / 4)


def measure_bm25(passages: SamplePassages, config: Bm25Config) -> Bm25Rate:
    """A BM25 index of the sample."""
    from rag.retrieval.bm25_index import build_bm25

    with tempfile.TemporaryDirectory() as scratch:
        started = time.perf_counter()
        build_bm25(Path(scratch), passages, config)
        seconds = time.perf_counter() - started
        size = sum(file.stat().st_size for file in Path(scratch).rglob("*") if file.is_file())
    return Bm25Rate(len(passages) / seconds, size / len(passages))


def like_passages(rows: int, dim: int) -> "Float[np.ndarray, 'rows dim']":
    """Made vectors that cost an index what real ones do: passages of a page are alike, few directions hold most.

    Spectrum and likeness are chosen so that HNSW inserts take as long as those of MiniLM vectors of Wikipedia.
    """
    import numpy as np

    draw = np.random.default_rng(0)
    spread = np.arange(1, dim + 1) ** -0.4
    pages = np.repeat(draw.standard_normal((rows // _PAGE + 1, dim), dtype=np.float32), _PAGE, axis=0)[:rows]
    made = (pages + 0.5 * draw.standard_normal((rows, dim), dtype=np.float32)) * spread
    unit: np.ndarray = made / np.linalg.norm(made, axis=1, keepdims=True)
    return unit.astype(np.float16)


def sample_passages(folder: Path) -> SamplePassages:
    """Passages from all over a source, in stretches, for reading each alone would take longer than what is measured."""
    from rag.corpus.passages import PassageTable

    table = PassageTable.load([folder])
    step = max(_STRETCH, len(table) // (_SAMPLED // _STRETCH))
    starts = range(0, len(table), step)
    rows = [row for start in starts for row in range(start, min(start + _STRETCH, len(table)))]
    return SamplePassages(table.rows(rows))


def _encode(encoder: "Encoder", passages: list[Passage]) -> float:
    """Passages a second."""
    titles, texts = [one.title for one in passages], [one.text for one in passages]
    started = time.perf_counter()
    encoder.encode_passages(titles, texts)
    return len(passages) / (time.perf_counter() - started)


def _xml_bytes(sample: Path) -> int:
    import bz2

    with bz2.open(sample) as stream:
        return sum(len(piece) for piece in iter(lambda: stream.read(1 << 20), b""))
