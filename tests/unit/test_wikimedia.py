"""Which files a dump is made of: from the lists of Wikimedia, its mirrors, archive.org, and a folder."""

import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from rag.corpus.download.files import WebOptions, dump_folder, find_dump, local_dump_files
from rag.corpus.download.wikimedia import DumpJob, files_of_status, parse_sums
from rag.errors import ConfigError, DumpError, ResourceError
from tests.support.dump_server import Fault, serving
from tests.support.shared_data import shared_data

_FOLDER = "/xxwiki/20240801/"
_QUICK = WebOptions(attempts=3, timeout_seconds=5.0, sleep=lambda _: None)
_BASE = "xxwiki-20240801-pages-articles"


def _job(names: list[str], status: str = "done") -> dict[str, Any]:
    files = {
        name: {"size": 10 + at, "sha1": f"{at:040x}", "md5": "x", "url": f"{_FOLDER}{name}"}
        for at, name in enumerate(names)
    }
    return {"status": status, "updated": "2024-08-03 10:00:00", "files": files}


def _status(**jobs: Any) -> bytes:
    return json.dumps({"version": "0.8", "jobs": jobs}).encode()


def _sums(*names: str) -> bytes:
    return "".join(f"{at:040x}  {name}\n" for at, name in enumerate(names)).encode()


_PARTS = [f"{_BASE}{part}.xml-p{pages}.bz2" for part, pages in [("10", "901p999"), ("2", "101p300"), ("2", "31p100")]]
_PARTS += [f"{_BASE}{part}.xml-p{part}p{part}.bz2" for part in (*"13456789",)]
_IN_ORDER = [f"{_BASE}1.xml-p1p1.bz2", _PARTS[2], _PARTS[1], *sorted(_PARTS[4:]), _PARTS[0]]
_WHOLE = f"{_BASE}.xml.bz2"


def test_parts_come_in_page_order_with_size_and_sum() -> None:
    content = _status(articlesdump=_job(_PARTS), articlesdumprecombine=_job([_WHOLE]))
    files = files_of_status(content, "https://mirror.example/dumps/xxwiki/20240801/", "articles")
    assert [file.name for file in files] == _IN_ORDER
    at = _PARTS.index(files[0].name)
    assert files[0] == (
        f"https://mirror.example/dumps/xxwiki/20240801/{_IN_ORDER[0]}",
        _IN_ORDER[0],
        10 + at,
        f"{at:040x}",
    )


@pytest.mark.parametrize("parts", [{}, {"articlesdump": _job(_PARTS, "waiting")}, {"articlesdump": _job([])}])
def test_the_joined_file_is_taken_where_there_are_no_parts(parts: dict[str, Any]) -> None:
    content = _status(**parts, articlesdumprecombine=_job([_WHOLE]))
    assert [file.name for file in files_of_status(content, "https://h/", "articles")] == [_WHOLE]


def test_index_files_follow_the_multistream_files() -> None:
    names = [f"{_BASE}-multistream-index{part}.txt-p{part}p{part}.bz2" for part in "21"]
    names += [f"{_BASE}-multistream{part}.xml-p{part}p{part}.bz2" for part in "21"]
    files = files_of_status(_status(articlesmultistreamdump=_job(names)), "https://h/", "multistream")
    assert [file.name for file in files] == [names[3], names[2], names[1], names[0]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_status(articlesdump=_job(_PARTS, "in-progress")), r"articlesdump is 'in-progress' .*is not finished"),
        (_status(articlesdump=_job(_PARTS, "waiting")), "take an earlier date"),
        (_status(articlesdump={"status": "failed"}), r"'failed' \(as of an unknown time\)"),
        (_status(pagetable=_job([])), "no job articlesdump, only pagetable"),
        (_status(articlesdump=_job([])), "is done, but lists no files"),
        (_status(articlesdump=_job(["xxwiki-20240801-part-1.xml.bz2"])), "has no file WIKI-DATE-pages-articles"),
        (_status(articlesdump=_job([_WHOLE, "../../etc/passwd"])), r"lists \.\./\.\./etc/passwd, whose place"),
        (_status(articlesdump=_job([_PARTS[0]])), "lacks part 1 of the dump"),
        (_status(articlesdump=_job([*_PARTS, "yywiki-20240801-pages-articles1.xml.bz2"])), "files of several dumps"),
        (b"<!DOCTYPE html><p>Sign in</p>", r"dumpstatus\.json is not the list of jobs .*a proxy answered"),
        (b'{"jobs": {"articlesdump": {"files": []}}}', r"\(jobs\.articlesdump\.status: Field required\)"),
        (b'{"jobs": {"a": {"status": "done", "files": {"x": {"size": -1}}}}}', r"jobs\.a\.files\.x\.size"),
        (b"[]", "the layout has changed"),
        (b"", "the layout has changed"),
    ],
)
def test_a_status_that_gives_no_whole_dump_is_refused_with_the_reason(content: bytes, message: str) -> None:
    with pytest.raises(DumpError, match=message):
        files_of_status(content, "https://h/xxwiki/20240801/", "articles")


def test_a_multistream_file_without_its_index_is_refused() -> None:
    content = _status(articlesmultistreamdump=_job([f"{_BASE}-multistream.xml.bz2"]))
    with pytest.raises(DumpError, match=r"lists no xxwiki-20240801-pages-articles-multistream-index\.txt\.bz2"):
        files_of_status(content, "https://h/", "multistream")


def test_a_dump_is_found_by_its_status() -> None:
    with serving({f"{_FOLDER}dumpstatus.json": _status(articlesdump=_job([_WHOLE]))}) as server:
        server.faults[f"{_FOLDER}dumpstatus.json"] = [Fault(503), Fault(cut_after=10)]
        (file,) = find_dump(dump_folder(server.url, "xxwiki", "20240801"), "articles", _QUICK)
        assert (file.url, file.size) == (f"{server.url}{_FOLDER}{_WHOLE}", 10)


@pytest.mark.parametrize("folder", [_FOLDER, "/download/xxwiki-20240801/"])
def test_a_mirror_or_an_item_of_the_archive_is_read_by_its_sums(folder: str) -> None:
    """A list of sums may have been written before all parts were there, but the joined file comes last."""
    with serving(
        {f"{folder}xxwiki-20240801-sha1sums.txt": _sums(*_PARTS, _WHOLE, "xxwiki-20240801-page.sql.gz")}
    ) as server:
        (file,) = find_dump(server.url + folder.rstrip("/"), "articles", _QUICK)
        assert file == (f"{server.url}{folder}{_WHOLE}", _WHOLE, None, f"{len(_PARTS):040x}")


def test_a_folder_of_any_name_is_read_by_the_sums_on_its_page() -> None:
    page = b"<a href='../'>up</a> <a href=\"xxwiki-20240801-sha1sums.txt\">sums</a>"
    with serving({"/old/": page, "/old/xxwiki-20240801-sha1sums.txt": _sums(*_PARTS)}) as server:
        assert [file.name for file in find_dump(f"{server.url}/old/", "articles", _QUICK)] == _IN_ORDER


@pytest.mark.parametrize("folder", [_FOLDER, "/old/"])
def test_a_dump_that_is_not_there_is_said_so(folder: str) -> None:
    with serving({}) as server, pytest.raises(DumpError, match=rf"no dump at .*{folder}: .*archive\.org"):
        find_dump(server.url + folder, "multistream", _QUICK)


def test_a_server_that_stays_busy_is_given_up() -> None:
    with serving({}) as server:
        server.lasting[f"{_FOLDER}dumpstatus.json"] = Fault(503)
        with pytest.raises(ResourceError, match="gave up after 3 attempts"):
            find_dump(server.url + _FOLDER, "articles", _QUICK)


def test_latest_is_the_newest_date_that_is_finished() -> None:
    page = b'<a href="20240701/">1</a><a href="/xxwiki/20240801/">2</a><a href="20240820/">3</a><a href="latest/">4</a>'
    files = {
        "/xxwiki/": page,
        "/xxwiki/20240701/dumpstatus.json": _status(articlesdump=_job([_WHOLE.replace("20240801", "20240701")])),
        "/xxwiki/20240801/dumpstatus.json": _status(articlesdump=_job([_WHOLE])),
        "/xxwiki/20240820/dumpstatus.json": _status(articlesdump=_job([], "in-progress")),
    }
    with serving(files) as server:
        (file,) = find_dump(dump_folder(server.url, "xxwiki", "latest"), "articles", _QUICK)
        assert file.url == f"{server.url}{_FOLDER}{_WHOLE}"


@pytest.mark.parametrize(
    ("page", "message"), [(b"<p>nothing</p>", "the page lists no dates"), (b'<a href="20240801/">', "none of 20240801")]
)
def test_a_latest_that_cannot_be_told_is_refused(page: bytes, message: str) -> None:
    with serving({"/xxwiki/": page}) as server, pytest.raises(DumpError, match=f"{message}.*give the date itself"):
        find_dump(f"{server.url}/xxwiki/latest/", "articles", _QUICK)


@pytest.mark.parametrize(
    ("base", "wiki", "date"),
    [
        ("https://h", "en wiki", "20240801"),
        ("https://h", "../etc", "20240801"),
        ("https://h", "enwiki", "2024-08-01"),
        ("https://h", "enwiki", ""),
        ("/mnt/dumps", "enwiki", "20240801"),
    ],
)
def test_names_that_cannot_be_are_refused(base: str, wiki: str, date: str) -> None:
    with pytest.raises(ConfigError):
        dump_folder(base, wiki, date)


@pytest.mark.parametrize("line", ["hello", "d41d8cd98f00b204e9800998ecf8427e  md5.txt", "0" * 40, "<html>"])
def test_a_list_of_sums_that_is_none_is_refused_with_the_line(line: str) -> None:
    with pytest.raises(DumpError, match="sums, line 2: "):
        parse_sums(f"{'0' * 40} *a.txt\n{line}\n".encode(), "sums")


def test_a_folder_gives_its_dump_in_page_order(tmp_path: Path) -> None:
    for name in [
        *_PARTS,
        "notes.txt",
        f"{_PARTS[0]}.download.json",
        f"{_PARTS[0]}.part",
        f"{_BASE}-multistream.xml.bz2",
    ]:
        (tmp_path / name).touch()
    assert local_dump_files(tmp_path, "articles") == [tmp_path / name for name in _IN_ORDER]
    assert local_dump_files(tmp_path, "multistream") == [tmp_path / f"{_BASE}-multistream.xml.bz2"]
    (tmp_path / f"{_BASE}.xml").touch()
    assert local_dump_files(tmp_path, "articles") == [tmp_path / f"{_BASE}.xml"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "try the other job"),
        ([f"{_BASE}-multistream.xml.bz2"], "dump_job = 'articles'"),
        ([f"{_BASE}.xml", _WHOLE], "holds the same dump twice"),
        ([f"{_BASE}1.xml-p1p2", f"{_BASE}1.xml-p1p2.bz2"], "a part of the dump twice"),
        ([_PARTS[0]], "lacks part 1"),
        ([_WHOLE, "xxwiki-20240701-pages-articles.xml.bz2"], "xxwiki-20240701, xxwiki-20240801"),
    ],
)
def test_a_folder_without_one_whole_dump_is_refused(tmp_path: Path, names: list[str], message: str) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(ConfigError, match=message):
        local_dump_files(tmp_path, "articles")


def _real_status() -> bytes:
    return gzip.decompress(shared_data("wikidump", "status", "enwiki-dumpstatus.json.gz").read_bytes())


@pytest.mark.parametrize("job", ["articles", "multistream"])
def test_the_real_status_and_sums_of_enwiki_agree(job: DumpJob) -> None:
    files = files_of_status(_real_status(), "https://h/enwiki/20240801/", job)
    path = shared_data("wikidump", "status", "enwiki-20240801-sha1sums.txt")
    sums = parse_sums(path.read_bytes(), path.name)
    xml = [file for file in files if ".xml" in file.name]
    assert len(xml) == 67
    assert len(files) == (67 if job == "articles" else 134)
    assert [sums[file.name] for file in files] == [file.sha1 for file in files]
    pages = [tuple(int(number) for number in file.name.split("-p")[-1].removesuffix(".bz2").split("p")) for file in xml]
    assert pages[0][0] == 1
    assert all(last + 1 == first for (_, last), (first, _) in itertools.pairwise(pages))


def test_real_sums_alone_give_the_joined_file() -> None:
    content = shared_data("wikidump", "status", "enwiki-20240801-sha1sums.txt").read_bytes()
    with serving({"/enwiki/20240801/enwiki-20240801-sha1sums.txt": content}) as server:
        files = find_dump(f"{server.url}/enwiki/20240801/", "multistream", _QUICK)
    assert [file.name for file in files] == [
        "enwiki-20240801-pages-articles-multistream.xml.bz2",
        "enwiki-20240801-pages-articles-multistream-index.txt.bz2",
    ]


def test_a_real_dump_that_was_waiting_is_not_finished() -> None:
    done = shared_data("wikidump", "status", "corpus_wrangler.dumpstatus.json").read_bytes()
    assert len(files_of_status(done, "https://h/", "multistream")) == 2
    waiting = shared_data("wikidump", "status", "corpus_wrangler.dumpstatus_waiting.json").read_bytes()
    with pytest.raises(DumpError, match=r"articlesmultistreamdumprecombine is 'waiting' \(as of 2020-10-03 01:01:38\)"):
        files_of_status(waiting, "https://h/", "multistream")
