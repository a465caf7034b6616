"""The passages of one source as vectors: what there is already is kept or copied, the rest is encoded shard by shard.

``encode_source`` is the whole way: look through ids and hashes, keep the finished shards of a killed run, find texts
that other folders hold, let a runner make the missing shards (in this process, in several, on several machines), and
put what is known of all shards into ``vectors.json``.
"""

import hashlib
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from rag.errors import DataError, ResourceError
from rag.files import publish
from rag.retrieval.encode_shard import (
    Batches,
    ShardJob,
    ShardRecord,
    ShardTask,
    SourceRows,
    close_all,
    encode_shard,
    finished_shard,
    load_encoder,
    open_source,
    text_digests,
)
from rag.retrieval.encoders import Encoder
from rag.retrieval.precision import resolve_precision
from rag.retrieval.reuse import KnownVectors, known_vectors
from rag.retrieval.vectors import (
    DIGEST_BYTES,
    DIGESTS,
    SHARD_ROWS,
    VectorFile,
    VectorShard,
    hash_row_ids,
    hash_texts,
    map_array,
    row_id_lines,
    shard_path,
)

RunShards = Callable[[Iterable[ShardTask]], Generator[ShardRecord]]
Progress = Callable[[Iterable[int]], Iterable[int]]


class VectorReport(NamedTuple):
    """Where the rows of a source's vectors came from; the four counts add up to its rows."""

    encoded: int  # by this call
    resumed: int  # in shards that an earlier call with the same folder finished
    reused: int  # copied from another folder of the same encoder, arithmetic and storage
    repeated: int  # the same title and text as an earlier row of the shard


def encode_source(
    source: Callable[[], SourceRows],
    encoder: Callable[[], Encoder],
    out: Path,
    *,
    known: Sequence[Path] = (),
    run_shards: RunShards | None = None,
    progress: Progress = iter,
    notify: Callable[[str], object] = lambda _: None,
) -> VectorReport:
    """Write the vectors of a source into ``out``, row by row in the source's order; see ``VectorFile``.

    ``source`` and ``encoder`` open what they say in whatever process encodes (see ``ShardJob``). ``known`` are other
    folders of vectors, from which equal texts are copied. ``run_shards`` makes records of tasks, in any order; without
    it this process encodes. ``progress`` sees the rows that have to be encoded go by, one by one.

    A killed call goes on at its shard when it is called again. Whatever was resumed and whoever encoded, the bytes
    are the same. What was copied was encoded in other company, so there a vector may differ from a new one by its
    rounding: by 1e-5 in float32, by a cosine of 0.999 in bfloat16, before it is stored. Equal texts have equal vectors
    within a shard, where nearly all repeats of a page lie; across shards they are encoded again, as close.

    Raises DataError for passages that cannot be right or a vector that cannot be stored, naming the passage, and
    ResourceError if the disk is too small for what is missing.
    """
    out.mkdir(parents=True, exist_ok=True)
    try:
        job = _job(source, encoder, out)
        survey = _survey(job)
        finished = _finished_shards(job, survey.tasks)
        missing = [task for task in survey.tasks if task.number not in finished]
        _check_space(job, missing)
        like, wanted = (job.card, job.dtype), [task.rows for task in missing]
        copies = known_vectors(known, like, map_array(_scratch_digests(out)), wanted, notify)
        records = list(_run(missing, copies, run_shards, progress))
    finally:
        close_all()
    finished |= {record.number: record.shard for record in records}
    _finish(job, survey, [finished[task.number] for task in survey.tasks])
    resumed = sum(len(task.rows) for task in survey.tasks) - sum(map(len, wanted))
    return VectorReport(
        encoded=sum(record.encoded for record in records),
        resumed=resumed,
        reused=sum(record.reused for record in records),
        repeated=sum(record.repeated for record in records),
    )


def _job(source: Callable[[], SourceRows], encoder: Callable[[], Encoder], out: Path) -> ShardJob:
    """What all shards have in common; the arithmetic is chosen once, by passages from the middle of the source."""
    passages, (model, card) = open_source(source), load_encoder(encoder)
    if not len(passages):
        raise DataError("the source holds no passages; look at what ingest rejected or left out")
    middle = len(passages) // 2
    sample = passages.rows(range(middle, min(middle + SHARD_ROWS, len(passages))))
    precision = resolve_precision(model, sample.titles, sample.texts).precision
    return ShardJob(out, source, encoder, replace(card, precision=precision), model.config.storage)


class _Survey(NamedTuple):
    """A task for every shard, and the hashes over all of them."""

    tasks: Sequence[ShardTask]
    row_ids_sha256: str
    texts_sha256: str


def _survey(job: ShardJob) -> _Survey:
    """Look through all ids and hashes; the hashes lie in a file afterwards.

    Raises DataError for a doubled id and for columns that cannot be right.
    """
    source = open_source(job.open_source)
    id_hashes = np.empty(len(source), np.int64)
    tasks, row_ids, texts = [], hashlib.sha256(), hashlib.sha256()
    shape = (len(source), DIGEST_BYTES)
    with _scratch_digests(job.out).open("wb") as file:  # written, not mapped: a full disk is an error then, no signal
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
        for number, rows in enumerate(_blocks(len(source))):
            keys = source.keys(rows)
            digests = text_digests(keys)
            if len(digests) != len(rows):
                raise DataError(f"the source gave {len(digests)} passages for {len(rows)} rows from {rows.start} on")
            file.write(digests.tobytes())
            id_hashes[rows.start : rows.stop] = [hash(row_id) for row_id in keys.ids]
            texts.update(digests.tobytes())
            row_ids.update(row_id_lines(keys.ids))
            tasks.append(ShardTask(job, number, rows, hash_row_ids(keys.ids), hash_texts(digests)))
    _check_unique(source, id_hashes)
    return _Survey(tasks, row_ids.hexdigest(), texts.hexdigest())


def _blocks(count: int) -> Iterator[range]:
    return (range(start, min(start + SHARD_ROWS, count)) for start in range(0, count, SHARD_ROWS))


def _check_unique(source: SourceRows, id_hashes: Int[np.ndarray, " count"]) -> None:
    """Equal ids have equal hashes: only ids whose hash occurs twice are compared, so that they never all lie here."""
    id_hashes.sort()
    suspects = set(id_hashes[1:][id_hashes[1:] == id_hashes[:-1]].tolist())
    seen: set[str] = set()
    for rows in _blocks(len(source) if suspects else 0):
        for row_id in source.keys(rows).ids:
            if hash(row_id) in suspects:
                if row_id in seen:
                    raise DataError(f"passage id {row_id!r} occurs more than once; ids must tell passages apart")
                seen.add(row_id)


def _finished_shards(job: ShardJob, tasks: Sequence[ShardTask]) -> dict[int, VectorShard]:
    """Shards that an earlier call with this folder made, finished or not, as far as their bytes are sound."""
    known = _shards_of_a_finished_folder(job)
    found = {task.number: finished_shard(task, known.get(task.number)) for task in tasks}
    return {number: shard for number, shard in found.items() if shard}


def _shards_of_a_finished_folder(job: ShardJob) -> dict[int, VectorShard]:
    try:
        file = VectorFile.open(job.out)
    except DataError:
        return {}
    theirs, ours = (file.card.fingerprint, file.card.precision), (job.card.fingerprint, job.card.precision)
    return dict(enumerate(file.shards)) if theirs == ours and file.dtype == job.dtype else {}


def _check_space(job: ShardJob, missing: Sequence[ShardTask]) -> None:
    needed = sum(len(task.rows) for task in missing) * job.card.dim * np.dtype(job.dtype).itemsize
    free = shutil.disk_usage(job.out).free
    if free < needed:
        raise ResourceError(
            f"{job.out} has {free:,} bytes free, but the vectors still to be made need {needed:,}; make room"
        )


def _run(
    missing: Sequence[ShardTask], copies: KnownVectors, run_shards: RunShards | None, progress: Progress
) -> Iterator[ShardRecord]:
    counter = _Counter(sum(len(task.rows) - copies.count(task.rows) for task in missing), progress)
    tasks = (task._replace(known=copies.of(task.rows)) for task in missing)
    if run_shards and missing:
        close_all()  # others encode: the memory is theirs
        with closing(run_shards(tasks)) as records:
            for record in records:
                counter.advance(record.encoded + record.repeated)
                yield record
    else:
        for task in tasks:
            record = encode_shard(task, counter.batches)
            counter.advance(record.repeated)
            yield record
    counter.finish()


class _Counter:
    """A ``progress`` over rows, moved on by as many rows as were encoded: batches differ in size, rows do not."""

    def __init__(self, count: int, progress: Progress) -> None:
        self._rows = iter(progress(range(count)))

    def batches(self, batches: Batches) -> Iterator[Sequence[int]]:
        """The batches, each of which moves it on when it is done."""
        for batch in batches:
            yield batch
            self.advance(len(batch))

    def advance(self, rows: int) -> None:
        for _ in islice(self._rows, rows):
            pass

    def finish(self) -> None:
        for _ in self._rows:
            pass


def _finish(job: ShardJob, survey: _Survey, shards: Sequence[VectorShard]) -> None:
    """Name the hashes, write ``vectors.json``, and remove what is of use on the way only or is of an earlier source."""
    publish(_scratch_digests(job.out), job.out / DIGESTS)
    VectorFile(
        folder=job.out,
        card=job.card,
        count=sum(shard.rows for shard in shards),
        dtype=job.dtype,
        row_ids_sha256=survey.row_ids_sha256,
        texts_sha256=survey.texts_sha256,
        norm_min=min(shard.norm_min for shard in shards),
        norm_max=max(shard.norm_max for shard in shards),
        shards=tuple(shards),
    ).save()
    kept = {shard_path(job.out, number) for number in range(len(shards))} | {job.out / DIGESTS}
    for path in {*job.out.glob("*.npy"), *job.out.glob(".*.json"), *job.out.glob(".*.tmp")} - kept:
        path.unlink()


def _scratch_digests(folder: Path) -> Path:
    return folder / f".{DIGESTS}"
