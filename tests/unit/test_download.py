"""Downloads from a real server that fails in every way that servers do: the file is right, or it is not there."""

import hashlib
import random
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.corpus.download.files import DownloadedFile, RemoteFile, WebOptions, download, verify_file
from rag.corpus.download.notes import bytes_in, note_path, part_path, read_note, record_path
from rag.errors import ConfigError, DumpError, RagError, ResourceError
from tests.support.dump_server import DumpServer, Fault, serving

_CONTENT = b"BZh9" + random.Random(0).randbytes(200_000)
_OTHER = b"BZh9" + random.Random(1).randbytes(200_000)
_SHA1 = hashlib.sha1(_CONTENT).hexdigest()
_NAME = "wiki.xml.bz2"
_PATH = f"/{_NAME}"
_PAGE = b"<!DOCTYPE html><title>Maintenance</title>"
_IS_HTML = {"Content-Type": "text/html; charset=utf-8"}


@pytest.fixture
def server() -> Iterator[DumpServer]:
    with serving({_PATH: _CONTENT}) as running:
        yield running


def _options(pauses: list[float] | None = None, attempts: int = 4, timeout_seconds: float = 5.0) -> WebOptions:
    return WebOptions(attempts, timeout_seconds, None, (pauses if pauses is not None else []).append)


def _file(server: DumpServer, size: int | None = len(_CONTENT), sha1: str | None = _SHA1) -> RemoteFile:
    return RemoteFile(server.url + _PATH, _NAME, size, sha1)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _stopped_after(server: DumpServer, file: RemoteFile, folder: Path, cut_after: int) -> None:
    """What a call leaves that is broken off after so many bytes."""
    server.faults[_PATH] = [Fault(cut_after=cut_after), Fault(503)]
    with pytest.raises(ResourceError, match="gave up"):
        download([file], folder, options=_options(attempts=1))
    assert bytes_in(part_path(folder / _NAME)) == cut_after
    server.requests.clear()


def test_a_file_comes_whole_with_its_facts(server: DumpServer, tmp_path: Path) -> None:
    (got,) = download([_file(server)], tmp_path / "new" / "folder", options=_options())
    folder = tmp_path / "new" / "folder"
    etag = server.files[_PATH].etag
    assert got == DownloadedFile(_NAME, server.url + _PATH, len(_CONTENT), _SHA1, "Thu, 01 Aug 2024 10:00:00 GMT", etag)
    assert (folder / _NAME).read_bytes() == _CONTENT
    assert _names(folder) == [_NAME, f"{_NAME}.download.json"]


def test_the_tool_names_itself_and_asks_for_the_bytes_as_they_are(server: DumpServer, tmp_path: Path) -> None:
    download([_file(server)], tmp_path, options=_options())
    (seen,) = server.requests
    assert seen.headers["user-agent"].startswith("openbook/")
    assert seen.headers["accept-encoding"] == "identity"
    assert "range" not in seen.headers


def test_cuts_are_resumed_by_range_of_the_same_version(server: DumpServer, tmp_path: Path) -> None:
    cuts = [Fault(cut_after=30_000)] * 6  # more than the attempts: each brings something new
    server.faults[_PATH] = list(cuts)
    pauses: list[float] = []
    (got,) = download([_file(server)], tmp_path, options=_options(pauses))
    assert (tmp_path / _NAME).read_bytes() == _CONTENT
    assert got.sha1 == _SHA1
    assert [seen.headers.get("range") for seen in server.gets(_PATH)[1:]] == [
        f"bytes={30_000 * number}-" for number in range(1, 7)
    ]
    assert {seen.headers["if-range"] for seen in server.gets(_PATH)[1:]} == {server.files[_PATH].etag}
    assert len(pauses) == 6
    assert max(pauses) <= 1.0


def test_a_weak_etag_does_not_name_a_version(server: DumpServer, tmp_path: Path) -> None:
    server.lasting[_PATH] = Fault(headers={"ETag": 'W/"1"'})
    server.faults[_PATH] = [Fault(cut_after=30_000, headers={"ETag": 'W/"1"'})]
    download([_file(server)], tmp_path, options=_options())
    assert server.gets(_PATH)[-1].headers["if-range"] == server.files[_PATH].last_modified


def test_a_server_that_ignores_ranges_sends_it_all_again(server: DumpServer, tmp_path: Path) -> None:
    server.faults[_PATH] = [Fault(cut_after=50_000), Fault(ignores_range=True)]
    download([_file(server)], tmp_path, options=_options())
    assert (tmp_path / _NAME).read_bytes() == _CONTENT
    assert [seen.status for seen in server.gets(_PATH)] == [200, 200]


def test_a_server_that_ignores_ranges_and_always_cuts_is_given_up(server: DumpServer, tmp_path: Path) -> None:
    server.lasting[_PATH] = Fault(cut_after=50_000, ignores_range=True)
    with pytest.raises(ResourceError, match=r"gave up after 4 attempts in a row without a new byte"):
        download([_file(server)], tmp_path, options=_options())
    assert len(server.gets(_PATH)) == 5  # the first brought something
    assert not (tmp_path / _NAME).exists()


@pytest.mark.parametrize("ignores_if_range", [False, True])
@pytest.mark.parametrize("validators", [(), ("ETag",), ("Last-Modified",), ("ETag", "Last-Modified")])
def test_a_file_that_changes_between_attempts_is_never_mixed(
    server: DumpServer, tmp_path: Path, ignores_if_range: bool, validators: tuple[str, ...]
) -> None:
    """No sum is published: only what the server says can tell, and where it says nothing, it all comes again."""
    server.faults[_PATH] = [Fault(cut_after=50_000, without=validators)]
    server.lasting[_PATH] = Fault(ignores_if_range=ignores_if_range, without=validators)

    def change(_: float) -> None:
        server.put(_PATH, _OTHER, last_modified="Fri, 02 Aug 2024 10:00:00 GMT")

    (got,) = download([_file(server, None, None)], tmp_path, options=_options()._replace(sleep=change))
    assert (tmp_path / _NAME).read_bytes() == _OTHER
    assert got.sha1 == hashlib.sha1(_OTHER).hexdigest()


def test_a_file_of_another_length_now_is_started_anew(server: DumpServer, tmp_path: Path) -> None:
    server.faults[_PATH] = [Fault(cut_after=150_000), Fault(ignores_if_range=True, without=("ETag",))]
    shorter = _OTHER[:100_000]
    options = _options()._replace(sleep=lambda _: server.put(_PATH, shorter))
    download([_file(server, None, None)], tmp_path, options=options)
    assert (tmp_path / _NAME).read_bytes() == shorter
    assert [seen.status for seen in server.gets(_PATH)] == [200, 416, 200]


def test_an_error_page_with_status_200_is_refused_and_not_kept(server: DumpServer, tmp_path: Path) -> None:
    server.lasting[_PATH] = Fault(200, _PAGE, _IS_HTML)
    for file in (_file(server), _file(server, None, None)):
        with pytest.raises(DumpError, match=r"/wiki\.xml\.bz2: the server answered 200 OK, but sent an HTML page"):
            download([file], tmp_path, options=_options())
    assert _names(tmp_path) == []
    assert len(server.gets(_PATH)) == 2


def test_an_error_page_in_the_middle_leaves_what_is_here(server: DumpServer, tmp_path: Path) -> None:
    _stopped_after(server, _file(server), tmp_path, 120_000)
    server.faults[_PATH] = [Fault(200, _PAGE, _IS_HTML)]
    with pytest.raises(DumpError, match="HTML page"):
        download([_file(server)], tmp_path, options=_options())
    assert part_path(tmp_path / _NAME).read_bytes() == _CONTENT[:120_000]
    download([_file(server)], tmp_path, options=_options())
    assert (tmp_path / _NAME).read_bytes() == _CONTENT


@pytest.mark.parametrize(
    ("name", "body", "headers", "message"),
    [
        ("a.bz2", b"hello", {}, r"sent no \.bz2 file: it begins with b'hello'"),
        ("a.gz", b"BZh9", {}, r"sent no \.gz file"),
        ("a.tsv", _PAGE, {}, "sent an HTML page"),
        ("a.tsv", b"id\ttext", {"Content-Encoding": "gzip"}, "packed the file as gzip, unasked"),
    ],
)
def test_what_cannot_be_the_file_is_refused(
    server: DumpServer, tmp_path: Path, name: str, body: bytes, headers: dict[str, str], message: str
) -> None:
    server.lasting[_PATH] = Fault(200, body, headers)
    with pytest.raises(DumpError, match=message):
        download([RemoteFile(server.url + _PATH, name, None, None)], tmp_path, options=_options())
    assert _names(tmp_path) == []


def test_a_gz_file_that_a_server_calls_gzip_encoded_is_not_unpacked(server: DumpServer, tmp_path: Path) -> None:
    content = b"\x1f\x8b" + _OTHER
    server.put("/a.gz", content)
    server.lasting["/a.gz"] = Fault(headers={"Content-Encoding": "gzip"})
    download([RemoteFile(f"{server.url}/a.gz", "a.gz", None, None)], tmp_path, options=_options())
    assert (tmp_path / "a.gz").read_bytes() == content


def test_a_page_is_fine_where_a_page_was_asked_for(server: DumpServer, tmp_path: Path) -> None:
    server.put("/notes.html", _PAGE)
    server.lasting["/notes.html"] = Fault(headers=_IS_HTML)
    download([RemoteFile(f"{server.url}/notes.html", "notes.html", None, None)], tmp_path, options=_options())
    assert (tmp_path / "notes.html").read_bytes() == _PAGE


def test_a_truncated_file_is_seen_by_its_published_size(server: DumpServer, tmp_path: Path) -> None:
    server.put(_PATH, _CONTENT[:90_000])
    with pytest.raises(DumpError, match=r"has 90,000 bytes where 200,004 were published"):
        download([_file(server)], tmp_path, options=_options())
    assert _names(tmp_path) == []


def test_a_truncated_file_is_seen_by_its_published_sum(server: DumpServer, tmp_path: Path) -> None:
    server.put(_PATH, _CONTENT[:90_000])
    with pytest.raises(DumpError, match=f"but {_SHA1} was published, twice: it is damaged"):
        download([_file(server, None)], tmp_path, options=_options())
    assert _names(tmp_path) == []


def test_a_body_shorter_than_its_stated_length_is_never_a_file(server: DumpServer, tmp_path: Path) -> None:
    server.put(_PATH, _CONTENT[:90_000])
    server.lasting[_PATH] = Fault(headers={"Content-Length": str(len(_CONTENT))}, cut_after=90_000)
    with pytest.raises(ResourceError, match="gave up"):
        download([_file(server, None, None)], tmp_path, options=_options())
    assert not (tmp_path / _NAME).exists()


def test_without_a_length_a_sum_is_needed(server: DumpServer, tmp_path: Path) -> None:
    """Nothing shows that a body which ends with the connection is whole, or that an old server's chunks are."""
    server.lasting[_PATH] = Fault(without=("Content-Length",))
    with pytest.raises(DumpError, match="says no size, and no sha1 is known"):
        download([_file(server, None, None)], tmp_path, options=_options())
    for file in (_file(server), _file(server, sha1=None)):
        server.faults[_PATH] = [Fault(without=("Content-Length",), cut_after=70_000)]
        download([file], tmp_path / str(file.sha1), options=_options())
        assert (tmp_path / str(file.sha1) / _NAME).read_bytes() == _CONTENT
        assert server.gets(_PATH)[-1].headers["range"] == "bytes=70000-"


def test_a_chunked_answer_is_read(server: DumpServer, tmp_path: Path) -> None:
    server.lasting[_PATH] = Fault(headers={"Transfer-Encoding": "chunked"}, without=("Content-Length",))
    (got,) = download([_file(server, None)], tmp_path, options=_options())
    assert got.size == len(_CONTENT)


def test_bytes_that_were_damaged_on_the_way_come_once_more(server: DumpServer, tmp_path: Path) -> None:
    server.faults[_PATH] = [Fault(200, _OTHER)]
    download([_file(server)], tmp_path, options=_options())
    assert (tmp_path / _NAME).read_bytes() == _CONTENT


def test_busy_servers_are_given_the_time_they_ask_for(server: DumpServer, tmp_path: Path) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=100)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    server.faults[_PATH] = [
        Fault(429, headers={"Retry-After": "7"}),
        Fault(503, headers={"Retry-After": soon}),
        Fault(500),
    ]
    pauses: list[float] = []
    download([_file(server)], tmp_path, options=_options(pauses))
    assert pauses[0] == 7.0
    assert 90 < pauses[1] <= 100
    assert 2 <= pauses[2] <= 4


def test_a_server_that_stays_busy_is_given_up(server: DumpServer, tmp_path: Path) -> None:
    server.lasting[_PATH] = Fault(503)
    pauses: list[float] = []
    with pytest.raises(ResourceError, match=r"gave up after 4 attempts .* 503 Service Unavailable.*OPENBOOK_DUMPS_URL"):
        download([_file(server)], tmp_path, options=_options(pauses))
    assert len(pauses) == 3


def test_a_server_that_asks_for_hours_is_left_alone(server: DumpServer, tmp_path: Path) -> None:
    server.lasting[_PATH] = Fault(429, headers={"Retry-After": "86400"})
    with pytest.raises(ResourceError, match="asks to wait 86,400 s"):
        download([_file(server)], tmp_path, options=_options())
    assert len(server.gets(_PATH)) == 1


@pytest.mark.parametrize(
    ("status", "message"),
    [(404, "keeps the dumps of a few months"), (410, "not there"), (403, "does not give"), (204, "is no file")],
)
@pytest.mark.parametrize("size", [None, len(_CONTENT)])
def test_what_waiting_cannot_mend_fails_at_once(
    server: DumpServer, tmp_path: Path, status: int, message: str, size: int | None
) -> None:
    server.lasting[_PATH] = Fault(status)
    with pytest.raises(DumpError, match=message):
        download([_file(server, size)], tmp_path, options=_options())
    assert len(server.requests) <= 2


def test_redirects_are_followed(server: DumpServer, tmp_path: Path) -> None:
    with serving({}) as front:
        paths = [f"/{number}.bz2" for number in range(4)]
        for path in paths:
            server.put(path, _CONTENT)
            front.lasting[path] = Fault(302, headers={"Location": server.url + path})
        front.lasting["/0.bz2"] = Fault(301, headers={"Location": "/1.bz2"})
        files = [RemoteFile(front.url + path, path[1:], len(_CONTENT), _SHA1) for path in paths]
        got = download(files, tmp_path, options=_options())
    assert [file.url for file in got] == [file.url for file in files]
    assert all((tmp_path / path[1:]).read_bytes() == _CONTENT for path in paths)


@pytest.mark.parametrize("target", ["ftp://127.0.0.1/x", "/wiki.xml.bz2", "file:///etc/passwd"])
def test_redirects_out_of_the_web_or_in_a_circle_are_refused(server: DumpServer, tmp_path: Path, target: str) -> None:
    server.lasting[_PATH] = Fault(302, headers={"Location": target})
    with pytest.raises(DumpError, match="cannot be fetched"):
        download([_file(server)], tmp_path, options=_options())


def test_a_server_out_of_reach_is_given_up(tmp_path: Path) -> None:
    with serving({}) as gone:
        url = gone.url + _PATH
    with pytest.raises(ResourceError, match=r"127\.0\.0\.1:\d+/wiki\.xml\.bz2: gave up after 4 attempts"):
        download([RemoteFile(url, _NAME, 1, None)], tmp_path, options=_options())


def test_a_server_that_does_not_answer_is_not_waited_for_forever(server: DumpServer, tmp_path: Path) -> None:
    server.faults[_PATH] = [Fault(silent_seconds=0.8)]
    download([_file(server)], tmp_path, options=_options(timeout_seconds=0.3))
    assert (tmp_path / _NAME).read_bytes() == _CONTENT


def test_two_files_come_at_a_time_and_no_more(tmp_path: Path) -> None:
    names = [f"{number}.bz2" for number in range(6)]
    with serving({f"/{name}": _CONTENT for name in names}, rate=4e6) as server:
        files = [RemoteFile(f"{server.url}/{name}", name, None, _SHA1) for name in names]
        got = download(files, tmp_path, options=_options())
        assert server.most_at_once == 2
    assert [file.name for file in got] == names


def test_a_finished_file_is_verified_and_not_fetched_again(server: DumpServer, tmp_path: Path) -> None:
    for file in (_file(server), _file(server, None, None)):
        first = download([file], tmp_path, options=_options())
        server.requests.clear()
        assert download([file], tmp_path, options=_options()) == first
        assert server.requests == []


def test_a_finished_file_that_was_damaged_since_is_fetched_again(server: DumpServer, tmp_path: Path) -> None:
    for file in (_file(server), _file(server, None, None)):
        download([file], tmp_path, options=_options())
        (tmp_path / _NAME).write_bytes(_CONTENT[:-1] + b"?")
        download([file], tmp_path, options=_options())
        assert (tmp_path / _NAME).read_bytes() == _CONTENT


def test_a_file_that_was_put_there_by_hand_is_used_only_where_its_sum_is_known(
    server: DumpServer, tmp_path: Path
) -> None:
    (tmp_path / _NAME).write_bytes(_CONTENT)
    (got,) = download([_file(server)], tmp_path, options=_options())
    assert server.requests == []
    assert (got.sha1, got.etag) == (_SHA1, "")
    record_path(tmp_path / _NAME).unlink()
    download([_file(server, None, None)], tmp_path, options=_options())
    assert len(server.gets(_PATH)) == 1


def test_a_file_of_another_address_is_not_taken_for_it(server: DumpServer, tmp_path: Path) -> None:
    server.put("/other/wiki.xml.bz2", _OTHER)
    download([_file(server, None, None)], tmp_path, options=_options())
    download([RemoteFile(f"{server.url}/other/wiki.xml.bz2", _NAME, None, None)], tmp_path, options=_options())
    assert (tmp_path / _NAME).read_bytes() == _OTHER


def test_unfinished_bytes_are_continued_by_a_later_call(server: DumpServer, tmp_path: Path) -> None:
    for file in (_file(server), _file(server, None, None)):
        whole = download([file], tmp_path / "undisturbed", options=_options())
        folder = tmp_path / str(file.size)
        _stopped_after(server, file, folder, 120_000)
        assert download([file], folder, options=_options()) == whole
        assert [seen.headers.get("range") for seen in server.requests] == ["bytes=120000-"]
        assert _names(folder) == _names(tmp_path / "undisturbed")
        for name in _names(folder):
            assert (folder / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes()
        for path in (tmp_path / "undisturbed").iterdir():
            path.unlink()


def test_a_file_that_came_whole_but_has_no_name_yet_is_not_asked_for(server: DumpServer, tmp_path: Path) -> None:
    _stopped_after(server, _file(server), tmp_path, 120_000)
    part_path(tmp_path / _NAME).write_bytes(_CONTENT)
    download([_file(server)], tmp_path, options=_options())
    assert server.requests == []
    assert (tmp_path / _NAME).read_bytes() == _CONTENT


def test_bytes_of_a_version_with_another_published_sum_are_not_continued(server: DumpServer, tmp_path: Path) -> None:
    _stopped_after(server, _file(server, sha1=None), tmp_path, 120_000)
    download([_file(server)], tmp_path, options=_options())
    assert [seen.headers.get("range") for seen in server.gets(_PATH)] == [None]


@pytest.mark.parametrize("note", [None, b"", b"{", b'{"url": 3}', b"[]"])
def test_bytes_of_unknown_origin_are_not_continued(server: DumpServer, tmp_path: Path, note: bytes | None) -> None:
    part_path(tmp_path / _NAME).write_bytes(_OTHER[:1000])
    if note is not None:
        note_path(tmp_path / _NAME).write_bytes(note)
    download([_file(server, None, None)], tmp_path, options=_options())
    assert (tmp_path / _NAME).read_bytes() == _CONTENT


def test_another_mirror_continues_where_a_sum_is_published(server: DumpServer, tmp_path: Path) -> None:
    with serving({_PATH: _CONTENT}) as mirror:
        _stopped_after(mirror, _file(mirror), tmp_path, 120_000)
        (got,) = download([_file(server)], tmp_path, options=_options())
    (seen,) = server.gets(_PATH)
    assert (seen.headers["range"], seen.headers.get("if-range")) == ("bytes=120000-", None)
    assert got.url == server.url + _PATH
    assert (tmp_path / _NAME).read_bytes() == _CONTENT


def test_another_mirror_starts_anew_where_nothing_is_published(server: DumpServer, tmp_path: Path) -> None:
    with serving({_PATH: _OTHER}) as mirror:
        _stopped_after(mirror, _file(mirror, None, None), tmp_path, 120_000)
        download([_file(server, None, None)], tmp_path, options=_options())
    assert (tmp_path / _NAME).read_bytes() == _CONTENT


def test_bytes_that_turn_out_wrong_when_whole_are_fetched_anew(server: DumpServer, tmp_path: Path) -> None:
    _stopped_after(server, _file(server), tmp_path, 120_000)
    part_path(tmp_path / _NAME).write_bytes(_OTHER[:120_000])
    download([_file(server)], tmp_path, options=_options())
    assert (tmp_path / _NAME).read_bytes() == _CONTENT
    assert [seen.status for seen in server.gets(_PATH)] == [206, 200]


@pytest.mark.parametrize("name", ["", ".", "..", "../x.bz2", "a/b", "a\\b", "a\0b"])
def test_names_that_leave_the_folder_are_refused(server: DumpServer, tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="is no name of a file"):
        download([RemoteFile(server.url + _PATH, name, None, None)], tmp_path / "folder", options=_options())
    assert server.requests == []
    assert not (tmp_path / "folder").exists()


def test_two_files_of_one_name_are_refused(server: DumpServer, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="two files are named"):
        download([_file(server), _file(server)], tmp_path, options=_options())


@pytest.mark.parametrize(
    "url", ["ftp://h/x", "file:///etc/passwd", "x.bz2", "http://", "http://h/a b", "https://[", ""]
)
def test_only_web_addresses_are_fetched(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="is no address that can be fetched"):
        download([RemoteFile(url, "x", None, None)], tmp_path, options=_options())


def test_what_cannot_fit_is_not_started(server: DumpServer, tmp_path: Path) -> None:
    huge = RemoteFile(server.url + _PATH, _NAME, 10**18, _SHA1)
    with pytest.raises(ResourceError, match=r"but 1,000,000,000,000,000,000 are to be fetched"):
        download([huge], tmp_path, options=_options())
    assert server.requests == []


def test_a_size_that_only_the_server_knows_counts_too(server: DumpServer, tmp_path: Path) -> None:
    server.lasting[_PATH] = Fault(headers={"Content-Length": str(10**18)}, keeps_to="HEAD")
    with pytest.raises(ResourceError, match="are to be fetched"):
        download([_file(server, None)], tmp_path, options=_options())
    assert server.gets(_PATH) == []


@pytest.mark.parametrize("status", [403, 405, 501])
def test_a_server_without_head_requests_will_do(server: DumpServer, tmp_path: Path, status: int) -> None:
    server.lasting[_PATH] = Fault(status, keeps_to="HEAD")
    download([_file(server, None, None)], tmp_path, options=_options())
    assert (tmp_path / _NAME).read_bytes() == _CONTENT


def test_a_full_disk_is_said_so(server: DumpServer, tmp_path: Path) -> None:
    part_path(tmp_path / _NAME).symlink_to("/dev/full")
    with pytest.raises(ResourceError, match=r"No space left on device.*Make room"):
        download([_file(server)], tmp_path, options=_options())
    assert not (tmp_path / _NAME).exists()


@contextmanager
def _files_limited_to(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_was_written_before_the_disk_failed_stays(server: DumpServer, tmp_path: Path) -> None:
    with _files_limited_to(65_536), pytest.raises(ResourceError, match=r"cannot read or write .*wiki\.xml\.bz2"):
        download([_file(server)], tmp_path, options=_options())
    kept = bytes_in(part_path(tmp_path / _NAME))
    assert 0 < kept <= 65_536
    download([_file(server)], tmp_path, options=_options())
    assert (tmp_path / _NAME).read_bytes() == _CONTENT
    assert server.gets(_PATH)[-1].headers["range"] == f"bytes={kept}-"


def test_a_folder_that_cannot_be_made_is_said_so(server: DumpServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResourceError, match="cannot make the folder"):
        download([_file(server)], tmp_path / "file" / "folder", options=_options())


def test_what_a_kill_left_of_a_note_is_swept_away(server: DumpServer, tmp_path: Path) -> None:
    (tmp_path / f".{_NAME}.part.json.77.tmp").write_text("{")
    download([_file(server)], tmp_path, options=_options())
    assert _names(tmp_path) == [_NAME, f"{_NAME}.download.json"]


def test_progress_counts_pieces_in_the_thread_of_the_caller(tmp_path: Path) -> None:
    content = b"BZh9" + bytes(2_500_000)
    with serving({"/a.bz2": content, "/b.bz2": content[:10]}) as server:
        server.faults["/a.bz2"] = [Fault(cut_after=1_500_000), Fault(ignores_range=True, cut_after=1_600_000)]
        files = [RemoteFile(f"{server.url}/{name}", name, None, None) for name in ("a.bz2", "b.bz2")]
        heard: list[tuple[int, int]] = []

        def progress(items: Iterable[int]) -> Iterator[int]:
            for _ in items:
                heard.append((len(items), threading.get_ident()))  # type: ignore[arg-type]
                yield _

        for _ in range(2):  # once from the server, once from the folder
            download(files, tmp_path, progress=progress, options=_options())
    assert heard == [(4, threading.get_ident())] * 8


def test_breaking_off_keeps_what_is_here(tmp_path: Path) -> None:
    content = b"BZh9" + random.Random(2).randbytes(3_000_000)
    with serving({_PATH: content}, rate=4e6) as server:
        file = RemoteFile(server.url + _PATH, _NAME, len(content), None)

        def progress(items: Iterable[int]) -> Iterator[int]:
            for item in items:
                raise KeyboardInterrupt
                yield item

        with pytest.raises(KeyboardInterrupt):
            download([file], tmp_path, progress=progress, options=_options())
        kept = bytes_in(part_path(tmp_path / _NAME))
        assert 0 < kept < len(content)
        server.rate = None
        download([file], tmp_path, options=_options())
        assert server.gets(_PATH)[-1].headers["range"] == f"bytes={kept}-"
    assert (tmp_path / _NAME).read_bytes() == content


def test_breaking_off_does_not_wait_for_a_pause_to_end(server: DumpServer, tmp_path: Path) -> None:
    server.put("/busy.bz2", _CONTENT)
    server.lasting["/busy.bz2"] = Fault(503, headers={"Retry-After": "600"})
    server.lasting[_PATH] = Fault(404, silent_seconds=0.1)
    files = [RemoteFile(f"{server.url}/busy.bz2", "busy.bz2", 1, None), _file(server)]
    started = time.monotonic()
    with pytest.raises(DumpError, match="404"):
        download(files, tmp_path)
    assert time.monotonic() - started < 60


def test_the_first_failure_stops_the_others_and_keeps_their_bytes(tmp_path: Path) -> None:
    content = b"BZh9" + random.Random(2).randbytes(3_000_000)
    with serving({"/slow.bz2": content}, rate=2e6) as server:
        server.lasting["/bad.bz2"] = Fault(404, silent_seconds=0.1)
        files = [
            RemoteFile(f"{server.url}/{name}.bz2", f"{name}.bz2", len(content), None) for name in ("slow", "bad", "x")
        ]
        with pytest.raises(DumpError, match=r"bad\.bz2: the server answered 404"):
            download(files, tmp_path, options=_options())
        assert server.gets("/x.bz2") == []
    note = read_note(tmp_path / "slow.bz2")
    assert note is not None
    assert note.size == len(content)
    assert part_path(tmp_path / "slow.bz2").read_bytes() == content[: bytes_in(part_path(tmp_path / "slow.bz2"))]


def test_proxies_of_the_environment_are_not_used(
    server: DumpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    download([_file(server)], tmp_path, options=_options(attempts=1))
    assert (tmp_path / _NAME).read_bytes() == _CONTENT


def test_a_proxy_that_is_named_is_used(server: DumpServer, tmp_path: Path) -> None:
    server.put(f"http://dumps.example{_PATH}", _CONTENT)
    file = RemoteFile(f"http://dumps.example{_PATH}", _NAME, len(_CONTENT), _SHA1)
    download([file], tmp_path, options=_options()._replace(proxy=server.url))
    assert (tmp_path / _NAME).read_bytes() == _CONTENT


_KILLED = """
import sys
from pathlib import Path
from rag.corpus.download.files import RemoteFile, download
download([RemoteFile(sys.argv[1], "wiki.xml.bz2", None, None)], Path(sys.argv[2]))
"""


def test_after_kill_9_the_same_call_goes_on(tmp_path: Path) -> None:
    content = b"BZh9" + random.Random(3).randbytes(2_000_000)
    part = part_path(tmp_path / _NAME)
    with serving({_PATH: content}, rate=2e6) as server:
        url = server.url + _PATH
        process = subprocess.Popen([sys.executable, "-c", _KILLED, url, str(tmp_path)])
        while bytes_in(part) < 500_000:
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.01)
        process.kill()
        process.wait()
        kept, server.rate = bytes_in(part), None
        assert 0 < kept < len(content)
        (got,) = download([RemoteFile(url, _NAME, None, None)], tmp_path, options=_options())
        assert [seen.headers.get("range") for seen in server.gets(_PATH)] == [None, f"bytes={kept}-"]
    assert (tmp_path / _NAME).read_bytes() == content
    assert got.sha1 == hashlib.sha1(content).hexdigest()
    assert _names(tmp_path) == [_NAME, f"{_NAME}.download.json"]


def test_the_server_of_these_tests_serves_a_folder_as_a_program(tmp_path: Path) -> None:
    (tmp_path / "served" / "a").mkdir(parents=True)
    (tmp_path / "served" / "a" / _NAME).write_bytes(_CONTENT)
    command = [sys.executable, "-m", "tests.support.dump_server", str(tmp_path / "served"), "--rate", "2e6"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = f"{process.stdout.readline().strip()}/a{_PATH}"
        started = time.monotonic()
        download([RemoteFile(url, _NAME, None, _SHA1)], tmp_path, options=_options())
        assert time.monotonic() - started > len(_CONTENT) / 2e6 / 2
        process.kill()


_SMALL = _CONTENT[:5000]
_FAULTS = st.one_of(
    st.integers(0, 5000).map(lambda cut: Fault(cut_after=cut)),
    st.integers(0, 5000).map(lambda cut: Fault(cut_after=cut, ignores_range=True)),
    st.integers(0, 5000).map(lambda cut: Fault(cut_after=cut, ignores_if_range=True, without=("ETag",))),
    st.integers(0, 5000).map(lambda cut: Fault(cut_after=cut, without=("ETag", "Last-Modified"))),
    st.sampled_from([429, 500, 503]).map(lambda status: Fault(status)),
    st.just(Fault(416)),
    st.just(Fault(200, _PAGE, _IS_HTML)),
    st.just(Fault(200, _CONTENT[5000:10_000])),
    st.just(Fault(206, _SMALL[7:], {"Content-Range": "bytes 7-4999/5000"})),
)


@given(faults=st.lists(_FAULTS, max_size=6), is_published=st.booleans())
@settings(derandomize=True, deadline=None, max_examples=30)
def test_whatever_happens_the_file_is_right_or_not_there(
    tmp_path_factory: pytest.TempPathFactory, faults: list[Fault], is_published: bool
) -> None:
    folder = tmp_path_factory.mktemp("download")
    sha1 = hashlib.sha1(_SMALL).hexdigest()
    with serving({_PATH: _SMALL}) as server:
        server.faults[_PATH] = list(faults) if is_published else [fault for fault in faults if fault.body == b""]
        file = RemoteFile(server.url + _PATH, _NAME, 5000 if is_published else None, sha1 if is_published else None)
        for _ in range(len(faults) + 1):
            try:
                download([file], folder, options=_options(attempts=3))
                break
            except RagError:
                assert not (folder / _NAME).exists()
    assert (folder / _NAME).read_bytes() == _SMALL
    assert _names(folder) == [_NAME, f"{_NAME}.download.json"]


def test_a_local_file_is_verified_against_a_sum_or_a_list_beside_it(tmp_path: Path) -> None:
    path = tmp_path / _NAME
    path.write_bytes(_CONTENT)
    assert verify_file(path, None) == verify_file(path, _SHA1) == _SHA1
    with pytest.raises(DumpError, match=rf"{_NAME} has the sha1 {_SHA1}, but the given one is 0000"):
        verify_file(path, "0" * 40)
    (tmp_path / "wiki-20240801-sha1sums.txt").write_text(f"{_SHA1}  {_NAME}\n{'1' * 40}  other.xml.bz2\n")
    assert verify_file(path, None) == _SHA1
    path.write_bytes(_CONTENT[:-1])
    with pytest.raises(DumpError, match=r"but that in wiki-20240801-sha1sums\.txt is"):
        verify_file(path, None)


def test_a_local_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match="cannot read"):
        verify_file(tmp_path / "missing.bz2", None)


@pytest.mark.parametrize("name", ["psgs_w100.tsv.gz", "articles.jsonl", "part-00000.parquet"])
def test_a_file_of_any_kind_is_verified(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(_CONTENT)
    assert verify_file(path, _SHA1) == _SHA1
    with pytest.raises(DumpError, match=f"{name} has the sha1 {_SHA1}, but the given one is"):
        verify_file(path, "0" * 40)


@pytest.mark.parametrize("sha1", [None, _SHA1])
def test_a_folder_has_no_sum(tmp_path: Path, sha1: str | None) -> None:
    with pytest.raises(ConfigError, match="is a folder, and a sha1 is that of a single file"):
        verify_file(tmp_path, sha1)
