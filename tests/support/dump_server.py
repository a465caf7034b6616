"""A real web server on this machine for tests of downloads: well-behaved, or failing as a script says.

As a program it serves a folder slowly, so that a download can be killed in the middle:
``python -m tests.support.dump_server FOLDER --rate BYTES_PER_SECOND`` prints its address and serves until killed.
"""

import argparse
import hashlib
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

_PIECE_BYTES = 1 << 16
_MODIFIED = "Thu, 01 Aug 2024 10:00:00 GMT"


@dataclass(frozen=True)
class Fault:
    """How one request goes wrong; what is not named stays as a good server does it."""

    status: int | None = None  # answered in place of the file, with ``body``
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)  # added, or in place of those of the same name
    cut_after: int | None = None  # bytes of the body, then the connection is closed
    ignores_range: bool = False  # the whole file with 200
    ignores_if_range: bool = False  # the range even where the file has changed
    without: tuple[str, ...] = ()  # header fields that are left out
    silent_seconds: float = 0.0  # before anything is answered
    keeps_to: str = "GET"  # the method that it applies to


@dataclass(frozen=True)
class Served:
    """A file as it is now."""

    content: bytes
    etag: str
    last_modified: str


@dataclass(frozen=True)
class Seen:
    """A request that came, with its header fields in lower case, and how it was answered."""

    method: str
    path: str
    headers: Mapping[str, str]
    status: int


class DumpServer:
    """Files by path, faults still to come by path, and what has been asked for."""

    def __init__(self, files: Mapping[str, bytes], rate: float | None = None) -> None:
        self.files: dict[str, Served] = {}
        self.faults: dict[str, list[Fault]] = {}  # used up in order, one a request
        self.lasting: dict[str, Fault] = {}  # after those, for every request
        self.requests: list[Seen] = []
        self.most_at_once = 0
        self.rate = rate  # bytes a second for each answer
        self._at_once = 0
        self._lock = threading.Lock()
        for path, content in files.items():
            self.put(path, content)
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.dump_server = self
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def put(self, path: str, content: bytes, last_modified: str = _MODIFIED) -> None:
        """Serve this content from now on, with an ETag of its own."""
        self.files[path] = Served(content, f'"{hashlib.sha1(content).hexdigest()[:12]}"', last_modified)

    def gets(self, path: str) -> list[Seen]:
        """The GET requests for a path so far."""
        return [seen for seen in self.requests if seen.path == path and seen.method == "GET"]

    def next_fault(self, path: str, method: str) -> Fault:
        """What goes wrong with this request."""
        with self._lock:
            coming = self.faults.get(path, [])
            if coming and coming[0].keeps_to == method:
                return coming.pop(0)
        lasting = self.lasting.get(path, Fault())
        return lasting if lasting.keeps_to == method else Fault()

    def note(self, seen: Seen) -> None:
        """Remember a request."""
        with self._lock:
            self.requests.append(seen)

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Count an answer among those that are being sent at the same time."""
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            yield
        finally:
            with self._lock:
                self._at_once -= 1

    def serve_forever(self) -> None:
        """Answer until stopped."""
        self._server.serve_forever(poll_interval=0.01)

    def stop(self) -> None:
        """Stop answering and free the port."""
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def serving(files: Mapping[str, bytes], rate: float | None = None) -> Iterator[DumpServer]:
    """A server of these files in a thread of its own."""
    server = DumpServer(files, rate)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


class _Server(ThreadingHTTPServer):
    dump_server: DumpServer
    daemon_threads = True
    block_on_close = False  # answers to a client that has gone are not waited for

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients of these tests go away in the middle on purpose."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        """Answer with the file, a range of it, or what is to go wrong."""
        self._answer()

    def do_HEAD(self) -> None:
        """Answer as to GET, without the body."""
        self._answer()

    def log_message(self, *_: object) -> None:
        """Tests look at ``requests``."""

    def _answer(self) -> None:
        server, path = self.server.dump_server, unquote(self.path)
        fault, served = server.next_fault(path, self.command), server.files.get(path)
        with server.one_more():
            time.sleep(fault.silent_seconds)
            status, headers, body = _planned(self.headers, served, fault)
            named = {name.lower(): value for name, value in self.headers.items()}
            server.note(Seen(self.command, path, named, status))
            self._send(status, headers, body, fault.cut_after)

    def _send(self, status: int, headers: Mapping[str, str], body: bytes, cut_after: int | None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.close_connection = cut_after is not None or "Content-Length" not in headers
        self.end_headers()
        if self.command == "HEAD":
            return
        if "chunked" in headers.values():
            body = (
                b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (body[:7], body[7:]) if piece)
                + b"0\r\n\r\n"
            )
        self._send_slowly(body[:cut_after])

    def _send_slowly(self, body: bytes) -> None:
        rate = self.server.dump_server.rate
        step = _PIECE_BYTES if rate is None else max(1, min(_PIECE_BYTES, int(rate / 20)))
        for start in range(0, len(body), step):
            self.wfile.write(body[start : start + step])
            if rate is not None:
                time.sleep(step / rate)


def _planned(asked: Message, served: Served | None, fault: Fault) -> tuple[int, dict[str, str], bytes]:
    """Status, header fields and body of the answer."""
    if fault.status is not None or served is None:
        status, body = (fault.status or 404), fault.body
        headers = {"Content-Type": "text/plain", "Content-Length": str(len(body))}
    else:
        status, headers, body = _file_answer(asked, served, fault)
    headers |= fault.headers
    return status, {name: value for name, value in headers.items() if name not in fault.without}, body


def _file_answer(asked: Message, served: Served, fault: Fault) -> tuple[int, dict[str, str], bytes]:
    """The whole file, or the range that was asked for where If-Range still holds."""
    headers = {"Content-Type": "application/octet-stream", "ETag": served.etag, "Last-Modified": served.last_modified}
    body, total = served.content, len(served.content)
    match = re.fullmatch(r"bytes=(\d+)-", asked.get("Range", ""))
    is_same = asked.get("If-Range", served.etag) in (served.etag, served.last_modified)
    if match is None or fault.ignores_range or not (is_same or fault.ignores_if_range):
        return 200, headers | {"Content-Length": str(total)}, body
    start = int(match[1])
    if start >= total:
        return 416, headers | {"Content-Range": f"bytes */{total}", "Content-Length": "0"}, b""
    length = total - start
    return (
        206,
        headers | {"Content-Range": f"bytes {start}-{total - 1}/{total}", "Content-Length": str(length)},
        body[start:],
    )


def main() -> None:
    """Serve a folder until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rate", type=float, default=None, help="bytes a second for each answer")
    options = parser.parse_args()
    files = {
        f"/{path.relative_to(options.folder)}": path for path in sorted(options.folder.rglob("*")) if path.is_file()
    }
    server = DumpServer({name: path.read_bytes() for name, path in files.items()}, options.rate)
    print(server.url, flush=True)  # noqa: T201
    server.serve_forever()


if __name__ == "__main__":
    main()
