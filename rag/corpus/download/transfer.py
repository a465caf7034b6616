"""One file from a web server into a folder: whole and right, or not there.

While it comes, its bytes lie under another name with a note of which version they are, so that a later call, after a
kill too, asks for the rest only. The file gets its name once size and sha1 are right.
"""

import itertools
import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx2 as httpx

from rag.corpus.download.notes import (
    DownloadedFile,
    Note,
    bytes_in,
    discard,
    keep_note,
    keep_record,
    note_path,
    part_path,
    read_note,
    read_record,
    sha1_of,
)
from rag.corpus.download.web import Trouble, WebOptions, check_answer, patiently
from rag.corpus.download.wikimedia import RemoteFile
from rag.errors import DumpError, ResourceError
from rag.files import publish

_BUFFER_BYTES = 1 << 18  # what a kill loses
_MAGIC = {".bz2": b"BZh", ".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd", ".7z": b"7z\xbc\xaf\x27\x1c"}
_CONTENT_RANGE = re.compile(r"bytes (?P<first>\d+)-\d+/(?P<total>\d+|\*)")
_log = logging.getLogger(__name__)


class Line(NamedTuple):
    """What every transfer of one download uses."""

    client: httpx.Client
    options: WebOptions
    stop: threading.Event  # set: leave off at the next piece, and keep what is here


class Transfer(NamedTuple):
    """One file to get: what it is, its final path, and who hears how many of its bytes are here."""

    file: RemoteFile
    path: Path
    line: Line
    report: Callable[[int], None]


class Stopped(Exception):
    """The download was broken off from outside; never leaves rag.corpus."""


class _WrongSum(Exception):
    """The whole file came and is not the published one; its bytes are gone."""


def fetch_file(transfer: Transfer) -> DownloadedFile:
    """The file under its final name, verified.

    A file that is here already is verified and not fetched. Bytes that have another sum than the published one are
    fetched once more from the start. Raises DumpError for a file that is not the published one, ResourceError where
    the server or the disk fails for good; unfinished bytes stay, but for those with a wrong sum.
    """
    record = _finished(transfer)
    if record is None:
        try:
            record = _fetch_once(transfer)
        except _WrongSum as error:
            _log.warning("%s; fetching it once more", error)
    if record is None:
        try:
            record = _fetch_once(transfer)
        except _WrongSum as error:
            raise DumpError(
                f"{error}, twice: it is damaged there, or another version. Take another mirror (OPENBOOK_DUMPS_URL)"
            ) from error
    transfer.report(record.size)
    return record


def _finished(transfer: Transfer) -> DownloadedFile | None:
    """The record of a file of an earlier call, verified; None where it has to be fetched."""
    file, path = transfer.file, transfer.path
    record = read_record(path)
    if not path.is_file() or (file.sha1 is None and (record is None or record.url != file.url)):
        return None  # not here, or nothing says what its bytes should be
    with _disk_errors(path):
        size, sha1 = bytes_in(path), sha1_of(path)
    if sha1 != (file.sha1 or (record and record.sha1)) or file.size not in (None, size):
        _log.warning("%s is not the file that was fetched or published (sha1 %s); fetching it again", path, sha1)
        return None
    if record is None or record.sha1 != sha1:
        record = DownloadedFile(file.name, file.url, size, sha1)
        keep_record(path, record)
    return record


def _fetch_once(transfer: Transfer) -> DownloadedFile:
    file, path = transfer.file, transfer.path
    part = part_path(path)
    note = patiently(file.url, lambda: _attempt(transfer), transfer.line.options, lambda: bytes_in(part))
    with _disk_errors(path):
        record = DownloadedFile(file.name, file.url, bytes_in(part), sha1_of(part), note.last_modified, note.etag)
        if file.sha1 not in (None, record.sha1):
            discard(path)
            raise _WrongSum(f"{file.url} came with the sha1 {record.sha1}, but {file.sha1} was published")
        keep_record(path, record)  # first: a file under its name always has its record
        publish(part, path)
        note_path(path).unlink(missing_ok=True)
    return record


def _attempt(transfer: Transfer) -> Note:
    """Get what is missing in one request; raises Trouble or a transport error where not all of it came."""
    file, path, line, _ = transfer
    if line.stop.is_set():
        raise Stopped
    note = _resumable(file, path)
    here = bytes_in(part_path(path)) if note else 0
    if note and note.size == here:
        return note
    with line.client.stream("GET", file.url, headers=_range(file, note, here)) as response:
        if note and response.status_code == 416:
            discard(path)
            raise Trouble("the server has no such range of the file; starting anew")
        check_answer(response)
        if note and response.status_code == 206:
            note = _continued(transfer, note, response, here)
        else:
            note, here = _begun(file, response), 0
        _write(transfer, note, _pieces(file, response, is_start=not here), here)
    return _whole(transfer, note)


def _resumable(file: RemoteFile, path: Path) -> Note | None:
    """What the bytes in the part file are, if the rest of the same version can be asked for."""
    note, here = read_note(path), bytes_in(part_path(path))
    if note is None or not here or note.sha1 != file.sha1:
        return None
    if file.size not in (None, note.size) or (note.size is not None and here > note.size):
        return None
    # Without a published sum, only the server that sent the first bytes can tell whether the rest belongs to them.
    return note if file.sha1 or (note.url == file.url and _validator(note)) else None


def _validator(note: Note) -> str:
    """What If-Range names the version by: a weak ETag may not be used (RFC 9110, section 13.1.5)."""
    return note.etag if note.etag and not note.etag.startswith("W/") else note.last_modified


def _range(file: RemoteFile, note: Note | None, here: int) -> dict[str, str]:
    """The header fields that ask for the rest; of one version only where the server can tell which."""
    if note is None:
        return {}
    condition = {"If-Range": _validator(note)} if note.url == file.url and _validator(note) else {}
    return {"Range": f"bytes={here}-"} | condition


def _continued(transfer: Transfer, note: Note, response: httpx.Response, here: int) -> Note:
    """The note for an answer that holds the rest; raises Trouble, and drops the bytes, where it is of another file."""
    answer = _note(transfer.file, response, note.size)
    is_same_server = note.url == answer.url
    if not _is_rest(response, note, here) or (is_same_server and _is_other_version(answer, note)):
        discard(transfer.path)
        raise Trouble("the file has changed since its first bytes came; starting anew")
    return note if is_same_server else answer


def _is_rest(response: httpx.Response, note: Note, here: int) -> bool:
    match = _CONTENT_RANGE.fullmatch(response.headers.get("content-range", ""))
    if match is None or int(match["first"]) != here:
        return False
    return note.size is None or match["total"] in ("*", str(note.size))


def _is_other_version(answer: Note, note: Note) -> bool:
    """Whether the server contradicts itself: some send the rest of another version in spite of If-Range."""
    pairs = [(answer.etag, note.etag), (answer.last_modified, note.last_modified)]
    return any(now and then and now != then for now, then in pairs)


def _begun(file: RemoteFile, response: httpx.Response) -> Note:
    """The note for an answer that holds the whole file."""
    if response.status_code != 200:
        raise DumpError(f"{file.url}: the server sent a part of the file though it was asked for all of it")
    stated = response.headers.get("content-length", "")
    return _note(file, response, int(stated) if stated.isdecimal() else file.size)


def _note(file: RemoteFile, response: httpx.Response, size: int | None) -> Note:
    headers = response.headers
    return Note(file.url, file.sha1, size, headers.get("etag", ""), headers.get("last-modified", ""))


def _pieces(file: RemoteFile, response: httpx.Response, is_start: bool) -> Iterator[bytes]:
    """The bytes as they come, not decoded; raises DumpError, before a byte is kept, where they are not the file's."""
    pieces = response.iter_raw()
    head = next(pieces, b"")
    if is_start and (problem := _problem(file, response.headers, head)):
        raise DumpError(f"{file.url}: the server answered 200 OK, but {problem}. Nothing of it was kept")
    return itertools.chain([head], pieces)


def _problem(file: RemoteFile, headers: httpx.Headers, head: bytes) -> str:
    """Why these cannot be the first bytes of the file; "" where they can."""
    if problem := _wrong_kind(file.name, headers, head):
        return problem
    stated = headers.get("content-length", "")
    if file.size is not None and stated and stated != str(file.size):
        return f"has {int(stated):,} bytes where {file.size:,} were published; take another mirror (OPENBOOK_DUMPS_URL)"
    if file.size is None and file.sha1 is None and not stated:
        return "says no size, and no sha1 is known: nothing would show whether it is whole; give the sha1"
    return ""


def _wrong_kind(name: str, headers: httpx.Headers, head: bytes) -> str:
    suffix = Path(name).suffix.lower()
    magic = _MAGIC.get(suffix, b"")
    if magic and head[: len(magic)] == magic[: len(head)]:
        return ""
    is_said_to_be_page = headers.get("content-type", "").startswith("text/html")
    is_page = is_said_to_be_page or head.lstrip()[:5].lower() in (b"<html", b"<!doc")
    if is_page and suffix not in (".html", ".htm"):
        return (
            "sent an HTML page (an error page, or the login of a proxy) in place of the file; open the address in a "
            "browser, and check it or take another mirror (OPENBOOK_DUMPS_URL)"
        )
    if magic:
        return f"sent no {suffix} file: it begins with {head[:20]!r}; take another mirror (OPENBOOK_DUMPS_URL)"
    if headers.get("content-encoding", "identity") != "identity":
        return f"packed the file as {headers['content-encoding']}, unasked; take another mirror (OPENBOOK_DUMPS_URL)"
    return ""


def _write(transfer: Transfer, note: Note, pieces: Iterator[bytes], here: int) -> None:
    """Add the pieces to the part file. Old bytes go before the note of new ones comes: a kill never mixes them."""
    path = transfer.path
    with _disk_errors(path), part_path(path).open("ab" if here else "wb", buffering=_BUFFER_BYTES) as part:
        keep_note(path, note)
        for piece in pieces:
            part.write(piece)
            here += len(piece)
            transfer.report(here)
            if transfer.line.stop.is_set():
                raise Stopped


def _whole(transfer: Transfer, note: Note) -> Note:
    here = bytes_in(part_path(transfer.path))
    size = note.size if transfer.file.size is None else transfer.file.size
    if size is not None and here < size:
        raise Trouble(f"the connection ended after {here:,} of {size:,} bytes")
    if size is not None and here > size:
        discard(transfer.path)
        raise DumpError(f"{transfer.file.url}: the server sent {here:,} bytes, not {size:,}; take another mirror")
    return note


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    """Errors of the disk, a full one above all, as ResourceError; those of the network are of other classes."""
    try:
        yield
    except OSError as error:
        raise ResourceError(
            f"cannot read or write {path}: {error.strerror or error}. Make room, or take another folder, and run the "
            "same command again: what is here stays and is not fetched twice"
        ) from error
