"""Which files a dump is made of: from the lists of Wikimedia, its mirrors, archive.org, and a folder."""

import gzip
import itertools
from typing import Any

import pytest

from rag.corpus.download.files import WebOptions, dump_folder, find_dump
from rag.corpus.download.parts import DumpJob
from rag.corpus.download.wikimedia import files_of_status, parse_sums
from rag.errors import ConfigError, DumpError, ResourceError
from tests.support.dump_lists import BASE, FOLDER, IN_ORDER, PARTS, WHOLE, job_of, status_of, sums_of
from tests.support.dump_server import Fault, serving
from tests.support.shared_data import shared_data

_QUICK = WebOptions(attempts=3, timeout_seconds=5.0, sleep=lambda _: None)


def test_parts_come_in_page_order_with_size_and_sum() -> None:
    content = status_of(articlesdump=job_of(PARTS), articlesdumprecombine=job_of([WHOLE]))
    files = files_of_status(content, "https://mirror.example/dumps/xxwiki/20240801/", "articles")
    assert [file.name for file in files] == IN_ORDER
    at = PARTS.index(files[0].name)
    assert files[0] == (
        f"https://mirror.example/dumps/xxwiki/20240801/{IN_ORDER[0]}",
        IN_ORDER[0],
        10 + at,
        f"{at:040x}",
    )


@pytest.mark.parametrize("parts", [{}, {"articlesdump": job_of(PARTS, "waiting")}, {"articlesdump": job_of([])}])
def test_the_joined_file_is_taken_where_there_are_no_parts(parts: dict[str, Any]) -> None:
    content = status_of(**parts, articlesdumprecombine=job_of([WHOLE]))
    assert [file.name for file in files_of_status(content, "https://h/", "articles")] == [WHOLE]


def test_index_files_follow_the_multistream_files() -> None:
    names = [f"{BASE}-multistream-index{part}.txt-p{part}p{part}.bz2" for part in "21"]
    names += [f"{BASE}-multistream{part}.xml-p{part}p{part}.bz2" for part in "21"]
    files = files_of_status(status_of(articlesmultistreamdump=job_of(names)), "https://h/", "multistream")
    assert [file.name for file in files] == [names[3], names[2], names[1], names[0]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (status_of(articlesdump=job_of(PARTS, "in-progress")), r"articlesdump is 'in-progress' .*is not finished"),
        (status_of(articlesdump=job_of(PARTS, "waiting")), "take an earlier date"),
        (status_of(articlesdump={"status": "failed"}), r"'failed' \(as of an unknown time\)"),
        (status_of(pagetable=job_of([])), "no job articlesdump, only pagetable"),
        (status_of(articlesdump=job_of([])), "is done, but lists no files"),
        (status_of(articlesdump=job_of(["xxwiki-20240801-part-1.xml.bz2"])), "has no file WIKI-DATE-pages-articles"),
        (status_of(articlesdump=job_of([WHOLE, "../../etc/passwd"])), r"lists \.\./\.\./etc/passwd, whose place"),
        (status_of(articlesdump=job_of([PARTS[0]])), "lacks part 1 of the dump"),
        (status_of(articlesdump=job_of([*PARTS[:2], *PARTS[3:]])), r"no part holds the page ids 31 to 100"),
        (status_of(articlesdump=job_of([*PARTS, "yywiki-20240801-pages-articles1.xml.bz2"])), "files of several dumps"),
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
    content = status_of(articlesmultistreamdump=job_of([f"{BASE}-multistream.xml.bz2"]))
    with pytest.raises(DumpError, match=r"lists no xxwiki-20240801-pages-articles-multistream-index\.txt\.bz2"):
        files_of_status(content, "https://h/", "multistream")


def test_a_dump_is_found_by_its_status() -> None:
    with serving({f"{FOLDER}dumpstatus.json": status_of(articlesdump=job_of([WHOLE]))}) as server:
        server.faults[f"{FOLDER}dumpstatus.json"] = [Fault(503), Fault(cut_after=10)]
        (file,) = find_dump(dump_folder(server.url, "xxwiki", "20240801"), "articles", _QUICK)
        assert (file.url, file.size) == (f"{server.url}{FOLDER}{WHOLE}", 10)


@pytest.mark.parametrize("folder", [FOLDER, "/download/xxwiki-20240801/"])
def test_a_mirror_or_an_item_of_the_archive_is_read_by_its_sums(folder: str) -> None:
    """A list of sums may have been written before all parts were there, but the joined file comes last."""
    with serving(
        {f"{folder}xxwiki-20240801-sha1sums.txt": sums_of(*PARTS, WHOLE, "xxwiki-20240801-page.sql.gz")}
    ) as server:
        (file,) = find_dump(server.url + folder.rstrip("/"), "articles", _QUICK)
        assert file == (f"{server.url}{folder}{WHOLE}", WHOLE, None, f"{len(PARTS):040x}")


def test_a_folder_of_any_name_is_read_by_the_sums_on_its_page() -> None:
    page = b"<a href='../'>up</a> <a href=\"xxwiki-20240801-sha1sums.txt\">sums</a>"
    with serving({"/old/": page, "/old/xxwiki-20240801-sha1sums.txt": sums_of(*PARTS)}) as server:
        assert [file.name for file in find_dump(f"{server.url}/old/", "articles", _QUICK)] == IN_ORDER


@pytest.mark.parametrize("folder", [FOLDER, "/old/"])
def test_a_dump_that_is_not_there_is_said_so(folder: str) -> None:
    with serving({}) as server, pytest.raises(DumpError, match=rf"no dump at .*{folder}: .*archive\.org"):
        find_dump(server.url + folder, "multistream", _QUICK)


def test_a_server_that_stays_busy_is_given_up() -> None:
    with serving({}) as server:
        server.lasting[f"{FOLDER}dumpstatus.json"] = Fault(503)
        with pytest.raises(ResourceError, match="gave up after 3 attempts"):
            find_dump(server.url + FOLDER, "articles", _QUICK)


def test_latest_is_the_newest_date_that_is_finished() -> None:
    page = b'<a href="20240701/">1</a><a href="/xxwiki/20240801/">2</a><a href="20240820/">3</a><a href="latest/">4</a>'
    files = {
        "/xxwiki/": page,
        "/xxwiki/20240701/dumpstatus.json": status_of(articlesdump=job_of([WHOLE.replace("20240801", "20240701")])),
        "/xxwiki/20240801/dumpstatus.json": status_of(articlesdump=job_of([WHOLE])),
        "/xxwiki/20240820/dumpstatus.json": status_of(articlesdump=job_of([], "in-progress")),
    }
    with serving(files) as server:
        (file,) = find_dump(dump_folder(server.url, "xxwiki", "latest"), "articles", _QUICK)
        assert file.url == f"{server.url}{FOLDER}{WHOLE}"


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
