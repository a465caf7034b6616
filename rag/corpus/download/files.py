"""The files of a dump, or any files of a web server, into a folder: resumed, verified, and polite to the server.

``find_dump`` says which files a dump has; ``download`` gets them; ``verify_file`` checks one that is here already.
"""

import queue
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx2 as httpx

from rag.corpus.download.notes import DownloadedFile, bytes_in, part_path, read_note, read_record, sha1_of
from rag.corpus.download.parts import DumpJob
from rag.corpus.download.transfer import Line, Stopped, Transfer, fetch_file
from rag.corpus.download.web import CONNECTIONS, PATIENT, WebOptions, check_answer, check_url, open_client, patiently
from rag.corpus.download.wikimedia import RemoteFile, dump_folder, find_dump, local_dump_files, parse_sums
from rag.errors import ConfigError, DumpError, ResourceError

__all__ = [
    "DownloadedFile",
    "DumpJob",
    "RemoteFile",
    "WebOptions",
    "download",
    "dump_folder",
    "find_dump",
    "local_dump_files",
    "verify_file",
]

_PIECE_BYTES = 1 << 20  # what progress counts in
_MARGIN_BYTES = 256 << 20  # of free disk that stays for others
_News = queue.SimpleQueue[int | None]


def download(
    files: Sequence[RemoteFile],
    folder: Path,
    *,
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
    options: WebOptions = PATIENT,
) -> list[DownloadedFile]:
    """Get the files into the folder, each under its name once its size and sha1 are right; in the given order.

    What an earlier call left is used, after a kill too: whole files are verified and stay, unfinished ones go on where
    they stopped, and start anew where the server has another version by now. One call at a time for a folder.
    ``progress`` wraps the pieces of 1 MiB of all files, with a length where all sizes are known.

    Raises DumpError for a file that is missing or not the published one, ConfigError for an address or name that
    cannot be used, ResourceError where the disk is too small or the server stays out of reach.
    """
    _check(files)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResourceError(f"cannot make the folder {folder}: {error.strerror}; take another one") from error
    _sweep(files, folder)
    with open_client(options) as client:
        sizes = [_size(file, folder / file.name, client, options) for file in files]
        _check_disk(files, sizes, folder)
        pieces = None if None in sizes else sum(_pieces_in(size or 0) for size in sizes)
        return _fetch_all(files, folder, client, options, lambda items: progress(_sized(items, pieces)))


def _check(files: Sequence[RemoteFile]) -> None:
    """Raise ConfigError for a name that is no plain file name, a name given twice, or an address of another kind."""
    names = [file.name for file in files]
    for file in files:
        check_url(file.url)
        if file.name in ("", ".", "..") or set("/\\\0") & set(file.name):
            raise ConfigError(f"{file.url}: {file.name!r} is no name of a file; the address must end with one")
        if names.count(file.name) > 1:
            raise ConfigError(f"two files are named {file.name!r}; each needs a name of its own in the folder")


def _sweep(files: Sequence[RemoteFile], folder: Path) -> None:
    """Remove what a kill in the middle of writing a note may have left, so that it never is among the files."""
    beginnings = tuple(f".{file.name}." for file in files)
    for path in folder.iterdir():
        if path.name.startswith(beginnings) and path.suffix == ".tmp":
            path.unlink()


def _size(file: RemoteFile, path: Path, client: httpx.Client, options: WebOptions) -> int | None:
    """The size of a file, for progress and disk: published, known from an earlier call, or as the server says."""
    if file.size is not None:
        return file.size
    record, note = read_record(path), read_note(path)
    if path.is_file() and record:
        return record.size
    if note and note.size is not None:
        return note.size

    def attempt() -> int | None:
        response = client.head(file.url)
        if response.status_code in (400, 403, 405, 501):
            return None  # a server that answers no HEAD; the request for the file itself will tell
        check_answer(response)
        stated = response.headers.get("content-length", "")
        return int(stated) if stated.isdecimal() else None

    return patiently(file.url, attempt, options)


def _check_disk(files: Sequence[RemoteFile], sizes: Sequence[int | None], folder: Path) -> None:
    """Raise ResourceError unless all that is missing fits, with a margin."""
    missing = 0
    for file, size in zip(files, sizes, strict=True):
        path = folder / file.name
        if size is not None and bytes_in(path) != size:
            missing += max(0, size - bytes_in(part_path(path)))
    free = shutil.disk_usage(folder).free
    if missing and missing + _MARGIN_BYTES > free:
        raise ResourceError(
            f"{folder} has {free:,} bytes free, but {missing:,} are to be fetched, and {_MARGIN_BYTES:,} should stay "
            "free; make room or take another folder"
        )


def _pieces_in(size: int) -> int:
    return -(-size // _PIECE_BYTES)


class _Sized(Iterable[int]):
    """Items whose number is known before they come."""

    def __init__(self, items: Iterable[int], length: int) -> None:
        self._items = items
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[int]:
        return iter(self._items)


def _sized(items: Iterable[int], length: int | None) -> Iterable[int]:
    return items if length is None else _Sized(items, length)


def _fetch_all(
    files: Sequence[RemoteFile],
    folder: Path,
    client: httpx.Client,
    options: WebOptions,
    progress: Callable[[Iterable[int]], Iterable[int]],
) -> list[DownloadedFile]:
    """All files, two at a time; the first that fails stops the others, whose bytes stay."""
    stop, news = threading.Event(), _News()
    line = Line(client, options._replace(sleep=options.sleep or stop.wait), stop)
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        try:
            jobs = [pool.submit(_job, file, folder / file.name, line, news) for file in files]
            for _ in progress(_arrivals(news, len(jobs))):
                pass
        finally:
            stop.set()  # a break-off by the caller too, such as Ctrl-C
    return _results(jobs)


def _job(file: RemoteFile, path: Path, line: Line, news: _News) -> DownloadedFile:
    """Fetch one file in a thread of its own, and tell of every piece once however often it comes."""
    told = 0

    def report(reached: int) -> None:
        nonlocal told
        while told < _pieces_in(reached):
            told += 1
            news.put(_PIECE_BYTES)

    try:
        return fetch_file(Transfer(file, path, line, report))
    except BaseException:
        line.stop.set()
        raise
    finally:
        news.put(None)


def _arrivals(news: _News, running: int) -> Iterator[int]:
    """The pieces as they come, until every job has ended."""
    while running:
        piece = news.get()
        if piece is None:
            running -= 1
        else:
            yield piece


def _results(jobs: Sequence[Future[DownloadedFile]]) -> list[DownloadedFile]:
    for job in jobs:
        error = job.exception()
        if error is not None and not isinstance(error, Stopped):
            raise error
    return [job.result() for job in jobs]


def verify_file(path: Path, sha1: str | None) -> str:
    """The sha1 of a file on this machine, checked against the given one, or against lists that lie beside it.

    A list is a file ``*-sha1sums.txt`` in the same folder that names this file. Raises DumpError where a sum is
    another one, or the file cannot be read, and ConfigError for a folder, which has no sum.
    """
    if path.is_dir():
        raise ConfigError(f"cannot read {path} as one file: it is a folder, and a sha1 is that of a single file")
    try:
        found = sha1_of(path)
        published = {"the given one": sha1} if sha1 else _sums_beside(path)
    except OSError as error:
        raise DumpError(f"cannot read {path}: {error.strerror or error}; check the path") from error
    for where, expected in published.items():
        if found != expected:
            raise DumpError(
                f"{path} has the sha1 {found}, but {where} is {expected}: it is damaged, cut or another version; "
                "download it again"
            )
    return found


def _sums_beside(path: Path) -> dict[str, str]:
    """Where a sum of this file is published -> the sum."""
    sums = {}
    for listing in sorted(path.parent.glob("*-sha1sums.txt")):
        if expected := parse_sums(listing.read_bytes(), str(listing)).get(path.name):
            sums[f"that in {listing.name}"] = expected
    return sums
