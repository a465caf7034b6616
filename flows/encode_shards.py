"""Who encodes the shards of a source: this process, several processes beside it, or Ray's workers on any machines.

Whoever it is runs ``rag.retrieval.encode_shard`` and gives the same bytes. Nothing starts before a shard has to be
made.
"""

import importlib.util
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextvars import Context, ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from flows.settings import Settings
from rag.config import EncoderConfig
from rag.errors import ConfigError, ResourceError

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue

    from rag.corpus.passages import PassageTable
    from rag.retrieval.encode import RunShards
    from rag.retrieval.encode_shard import PassageKeys, ShardRecord, ShardTask, SourcePassages
    from rag.retrieval.encoders import Encoder

R = TypeVar("R")
_AHEAD = 2  # shards a worker that wait for it


@dataclass(frozen=True)
class PassageFolders:
    """Opens the passages of one source, in any process that sees the workspace."""

    folders: tuple[Path, ...]

    def __call__(self) -> "PassageRows":
        from rag.corpus.passages import PassageTable

        return PassageRows(PassageTable.load(self.folders))


class PassageRows:
    """A passage table as encoding reads it: the columns it needs, some thousand rows at a time."""

    def __init__(self, table: "PassageTable") -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    def keys(self, rows: range) -> "PassageKeys":
        """Ids and hashes of rows that lie one after the other."""
        from rag.retrieval.encode_shard import PassageKeys

        return PassageKeys(*self._columns(rows, "passage_id", "text_sha1"))

    def rows(self, rows: range) -> "SourcePassages":
        """The passages of rows that lie one after the other."""
        from rag.retrieval.encode_shard import SourcePassages

        return SourcePassages(*self._columns(rows, "passage_id", "text_sha1", "title", "text"))

    def _columns(self, rows: range, *names: str) -> list[list[str]]:
        return [column.to_pylist() for column in self._table.block(rows, names).columns]


@dataclass(frozen=True)
class EncoderFolder:
    """Loads the context encoder, in any process that sees its folder."""

    path: Path
    config: EncoderConfig
    encoder_id: str
    device: str

    def __call__(self) -> "Encoder":
        from rag.retrieval.encoders import Encoder

        encoder = Encoder.load(self.path, self.config, encoder_id=self.encoder_id)
        encoder.module.to(self.device)
        return encoder


def shard_runner(settings: Settings, device: str) -> "RunShards | None":
    """Who encodes by these settings; None: this process, with all its threads.

    Raises ConfigError where Ray is asked for and not installed.
    """
    if settings.ray:
        if not all(map(importlib.util.find_spec, ("ray", "prefect_ray"))):
            raise ConfigError(
                f"OPENBOOK_RAY is {settings.ray!r}, but Ray is missing: pip install 'openbook-rag[ray]', or unset it"
            )
        return partial(_by_ray, settings, device)
    gpus = _gpus() if device == "cuda" else []
    encoders = settings.encoders or len(gpus) or 1
    return partial(_by_processes, encoders, _threads(settings, encoders), gpus) if encoders > 1 else None


def encode_with(threads: int, task: "ShardTask") -> "ShardRecord":
    """One shard, on so many threads; what workers of either kind call."""
    import torch

    from rag.retrieval.encode_shard import encode_shard

    torch.set_num_threads(threads)
    return encode_shard(task)


def _by_processes(count: int, threads: int, gpus: list[str], tasks: "Iterable[ShardTask]") -> "Generator[ShardRecord]":
    from rag.processes import Processes

    own_gpu = multiprocessing.get_context("spawn").SimpleQueue()
    for number in range(count):
        own_gpu.put(gpus[number % len(gpus)] if gpus else "")
    with Processes(count, _take_gpu, (own_gpu,)) as processes:
        for _, record in processes.each(partial(encode_with, threads), tasks, _ended):
            yield record


def _take_gpu(own_gpu: "SimpleQueue[str]") -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = own_gpu.get()  # heeded, for this process has not asked CUDA anything yet


def _gpus() -> list[str]:
    """What names each GPU that this process may use."""
    import torch

    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible.split(",") if visible else list(map(str, range(torch.cuda.device_count())))


def _threads(settings: Settings, encoders: int) -> int:
    return settings.threads or max(1, settings.cores // encoders)


def _ended(waiting: "list[ShardTask]") -> ResourceError:
    return ResourceError(
        f"a process that encodes was ended from outside while it worked on shard {waiting[0].number} or one of the "
        "next; most often the system ends it for lack of memory: set OPENBOOK_ENCODERS lower, or free memory, and "
        "start again; finished shards are kept"
    )


def _by_ray(settings: Settings, device: str, tasks: "Iterable[ShardTask]") -> "Generator[ShardRecord]":
    """By the workers of a Ray, which gives a shard to another worker where one dies."""
    import ray
    from prefect import flow
    from prefect_ray import RayTaskRunner

    is_local = settings.ray == "local"
    encoders = settings.encoders or settings.cores
    threads = _threads(settings, encoders) if is_local else settings.threads or 1
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if is_local:
        options |= {"num_cpus": encoders * threads, "include_dashboard": False}
    encode_shards = flow(name="encode-shards", task_runner=RayTaskRunner(settings.ray, options), persist_result=False)
    work = _RayWork(tasks, threads, int(device == "cuda"))
    try:
        yield from _in_own_context(encode_shards(_encode_by_tasks), work)
    except ConnectionError as error:
        raise ResourceError(
            f"no Ray answers at {settings.ray}: {error}; look at its address, and where it asks for a token, set "
            "RAY_AUTH_MODE=token and have its ~/.ray/auth_token here too"
        ) from error
    except ray.exceptions.RayError as error:
        raise ResourceError(f"Ray ({settings.ray}) cannot encode: {error}; finished shards are kept") from error


class _RayWork(NamedTuple):
    """What the flow for Ray has to do; no parameter of it, for Prefect keeps those on its server."""

    tasks: "Iterable[ShardTask]"
    threads: int  # of a worker
    gpus: int  # of a worker


_RAY_WORK: ContextVar[_RayWork] = ContextVar("shards for Ray")


def _in_own_context(start: Callable[[], Generator[R]], work: _RayWork) -> Generator[R]:
    """Run a flow as if nothing was running around it.

    Prefect sends what runs around a task to its worker, parameters included, and those of a stage cannot travel.
    """
    context = Context()
    context.run(_RAY_WORK.set, work)
    results = context.run(start)
    try:
        while (result := context.run(next, results, None)) is not None:
            yield result
    finally:
        context.run(results.close)


def _encode_by_tasks() -> "Generator[ShardRecord]":
    """The flow: each shard is a task, and only so many are on the way at a time."""
    import ray
    from prefect import task
    from prefect.cache_policies import NO_CACHE
    from prefect_ray.context import remote_options

    tasks, threads, gpus = _RAY_WORK.get()
    encode = task(name="encode-shard", task_run_name="shard {number}", cache_policy=NO_CACHE, persist_result=False)
    found = ray.cluster_resources()
    workers = int(found.get("GPU", 0) if gpus else found.get("CPU", 0) // threads)
    if not workers:
        wanted = "a GPU" if gpus else f"{threads} CPUs for a worker"
        raise ResourceError(f"Ray lacks {wanted} ({found}); look at OPENBOOK_DEVICE and OPENBOOK_THREADS")
    waiting: deque[Any] = deque()
    for one in tasks:
        with remote_options(num_cpus=threads, num_gpus=gpus):
            # a closure, because Prefect looks through every other kind of parameter for futures
            waiting.append(encode(_numbered).submit(one.number, partial(encode_with, threads, one)))
        if len(waiting) >= workers * (1 + _AHEAD):
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _numbered(number: int, work: "Callable[[], ShardRecord]") -> "ShardRecord":  # noqa: ARG001  Prefect shows the number
    return work()
