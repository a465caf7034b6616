"""How Wikimedia lays out a dump: which files it is made of, in which order, and what their sums are.

A dump is a folder ``WIKI/DATE/`` whose ``dumpstatus.json`` lists every job with its state and files. Mirrors, and the
items of archive.org, may hold the files and ``WIKI-DATE-sha1sums.txt`` only.
Source: https://meta.wikimedia.org/wiki/Data_dumps/Dump_format and the dumps themselves, 2016 to 2024.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, Field, ValidationError

from rag.corpus.download.parts import DumpJob, IncompleteDumpError, check_listed, select_xml
from rag.corpus.download.web import PATIENT, WebOptions, check_url, fetch, open_client
from rag.errors import ConfigError, DumpError

# The job that writes the parts, then the one that joins them; small wikis have the first only, with a single file.
_JOBS: dict[DumpJob, tuple[str, str]] = {
    "multistream": ("articlesmultistreamdump", "articlesmultistreamdumprecombine"),
    "articles": ("articlesdump", "articlesdumprecombine"),
}
_SUM_LINE = re.compile(r"(?P<sha1>[0-9a-f]{40})  ?\*?(?P<name>\S.*)")
_FOLDER_NAME = re.compile(r"/(?P<wiki>[a-z0-9_]+)[/-](?P<date>\d{8})/$")
_DATES_TRIED = 6  # a wiki is dumped twice a month: more unfinished ones in a row mean something else
_Get = Callable[[str], bytes | None]


class RemoteFile(NamedTuple):
    """A file on a web server, with its size and sha1 as published (None: not published)."""

    url: str
    name: str
    size: int | None
    sha1: str | None


class _File(BaseModel):
    size: int | None = Field(None, ge=0)
    sha1: str | None = Field(None, pattern="^[0-9a-f]{40}$")


class _Job(BaseModel):
    status: str
    updated: str = ""
    files: dict[str, _File] = {}


class _Status(BaseModel):
    jobs: dict[str, _Job]


def dump_folder(base: str, wiki: str, date: str) -> str:
    """The address of a dump's folder; ``date`` is YYYYMMDD, or "latest" for the newest that is finished.

    Raises ConfigError for what cannot be the name of a wiki or a date.

    >>> dump_folder("https://dumps.wikimedia.org", "enwiki", "20240801")
    'https://dumps.wikimedia.org/enwiki/20240801/'
    """
    if not re.fullmatch(r"[a-z0-9_]+", wiki):
        raise ConfigError(f"{wiki!r} is no name of a wiki; they look like enwiki, simplewiki or zh_min_nanwiki")
    if not re.fullmatch(r"\d{8}|latest", date):
        raise ConfigError(f"{date!r} is no date of a dump; write YYYYMMDD, such as 20240801, or latest")
    check_url(base)
    return f"{base.rstrip('/')}/{wiki}/{date}/"


def find_dump(folder_url: str, job: DumpJob, options: WebOptions = PATIENT) -> list[RemoteFile]:
    """The XML files of a dump in page order, then, for multistream, their index files in the same order.

    From ``dumpstatus.json`` the parts are taken rather than the file that joins them: each is checked by itself, so
    a damaged byte costs one part, and two come at a time. A list of sums does not say whether all parts were done
    when it was written, but the joined file comes last: there that one is taken where it is listed.

    A folder that ends in ``/latest/`` stands for the newest date whose job is done, and the addresses carry that date.
    Raises DumpError for a dump that is not there, not finished, without that job, or laid out in an unknown way.
    """
    folder_url = folder_url.rstrip("/") + "/"
    check_url(folder_url)
    with open_client(options) as client:
        return _find(folder_url, job, lambda url: fetch(url, client, options))


def _find(folder_url: str, job: DumpJob, get: _Get) -> list[RemoteFile]:
    if folder_url.endswith("/latest/"):
        return _find_latest(folder_url.removesuffix("latest/"), job, get)
    status_url = folder_url + "dumpstatus.json"
    if (content := get(status_url)) is not None:
        return files_of_status(content, folder_url, job)
    sums_url = _sums_url(folder_url, get)
    if sums_url is None or (content := get(sums_url)) is None:
        raise DumpError(
            f"no dump at {folder_url}: neither dumpstatus.json nor a list *-sha1sums.txt is there. Check the name of "
            "the wiki and the date; Wikimedia keeps the dumps of a few months only. Mirrors (OPENBOOK_DUMPS_URL) may "
            "have more; old dumps lie at addresses like https://archive.org/download/enwiki-20160501/"
        )
    sums = parse_sums(content, sums_url)
    return [RemoteFile(folder_url + name, name, None, sums[name]) for name in _select(sums, job, sums_url)]


def _find_latest(wiki_url: str, job: DumpJob, get: _Get) -> list[RemoteFile]:
    listing = get(wiki_url) or b""
    dates = sorted(set(re.findall(r"""href=["'][^"']*?\b(\d{8})/["']""", listing.decode("utf-8", "replace"))))
    for date in reversed(dates[-_DATES_TRIED:]):
        folder_url = f"{wiki_url}{date}/"
        content = get(folder_url + "dumpstatus.json")
        if content is not None and _done(_jobs(content, folder_url), job):
            return files_of_status(content, folder_url, job)
    tried = f"none of {', '.join(dates[-_DATES_TRIED:])} is finished" if dates else "the page lists no dates"
    raise DumpError(f"cannot tell which date 'latest' is at {wiki_url}: {tried}; give the date itself, as YYYYMMDD")


def files_of_status(content: bytes, folder_url: str, job: DumpJob) -> list[RemoteFile]:
    """The files of a finished job in a ``dumpstatus.json``, ordered as in find_dump.

    Raises DumpError where the job is missing or not done, or where this is no such file.
    """
    jobs = _jobs(content, folder_url)
    done = _done(jobs, job)
    if done is None:
        raise DumpError(_why_not_done(jobs, job, folder_url))
    names = _select(done.files, job, folder_url)
    if unknown := sorted(set(done.files) - set(names)):
        raise DumpError(f"{folder_url}: the job lists {unknown[0]}, whose place in the dump is unknown: a new layout")
    return [RemoteFile(folder_url + name, name, done.files[name].size, done.files[name].sha1) for name in names]


def _jobs(content: bytes, folder_url: str) -> dict[str, _Job]:
    try:
        return _Status.model_validate_json(content).jobs
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise DumpError(
            f"{folder_url}dumpstatus.json is not the list of jobs that it should be ({where or 'top'}: "
            f"{problem['msg']}): the layout has changed, or a proxy answered; look at it in a browser"
        ) from error


def _done(jobs: dict[str, _Job], job: DumpJob) -> _Job | None:
    known = [jobs[name] for name in _JOBS[job] if name in jobs]
    return next((entry for entry in known if entry.status == "done" and entry.files), None)


def _why_not_done(jobs: dict[str, _Job], job: DumpJob, folder_url: str) -> str:
    for name, entry in [(name, jobs[name]) for name in _JOBS[job] if name in jobs]:
        if entry.status == "done":
            return f"{folder_url}: the job {name} is done, but lists no files: the layout has changed"
        return (
            f"{folder_url}: the job {name} is {entry.status!r} (as of {entry.updated or 'an unknown time'}): "
            "this dump is not finished. Wait for it, or take an earlier date"
        )
    return f"{folder_url}: no job {_JOBS[job][0]}, only {', '.join(sorted(jobs)) or 'none'}; try the other dump_job"


def _sums_url(folder_url: str, get: _Get) -> str | None:
    """Where the folder's list of sums should be: by its name, or by the folder's page where the name does not say."""
    if match := _FOLDER_NAME.search(folder_url):
        return f"{folder_url}{match['wiki']}-{match['date']}-sha1sums.txt"
    listing = (get(folder_url) or b"").decode("utf-8", "replace")
    names = sorted(set(re.findall(r"""href=["'](?:\./)?([\w.-]+-sha1sums\.txt)["']""", listing)))
    return folder_url + names[0] if len(names) == 1 else None


def parse_sums(content: bytes, where: str) -> dict[str, str]:
    """File name -> sha1 of a list as ``sha1sum`` writes it.

    Raises DumpError, with the line, for anything else.

    >>> parse_sums(b"da39a3ee5e6b4b0d3255bfef95601890afd80709  empty.txt\\n", "sums.txt")
    {'empty.txt': 'da39a3ee5e6b4b0d3255bfef95601890afd80709'}
    """
    sums = {}
    for number, line in enumerate(content.decode("utf-8", "replace").split("\n"), 1):
        if not line.strip():
            continue
        match = _SUM_LINE.fullmatch(line.rstrip())
        if match is None:
            raise DumpError(
                f"{where}, line {number}: {line[:80]!r} is not a sha1 and a file name; fetch the list again"
            )
        sums[match["name"]] = match["sha1"]
    return sums


def local_dump_files(folder: Path, job: DumpJob) -> list[Path]:
    """The XML files of the dump that lies in a folder, in page order: the joined file, or else all parts.

    Raises DumpError where a part is missing: by the numbers and page ids in the names, or by a ``*-sha1sums.txt`` or
    ``dumpstatus.json`` in the folder. Raises ConfigError where there is no dump of that kind, or more than one.
    """
    names = [path.name for path in folder.iterdir() if path.is_file()]
    try:
        chosen = select_xml(names, job, str(folder))
    except IncompleteDumpError:
        raise
    except DumpError as error:
        raise ConfigError(f"{error}; or give the file itself as the path") from error
    for listing, listed in _lists_in(folder, names, job):
        check_listed(chosen, listed, job, str(folder), listing)
    return [folder / name for name in chosen]


def _lists_in(folder: Path, names: Iterable[str], job: DumpJob) -> Iterator[tuple[str, set[str]]]:
    """Every list of a dump's files that lies in a folder: its name, and the names in it."""
    for name in sorted(names):
        path = folder / name
        try:
            if name.endswith("-sha1sums.txt"):
                yield name, set(parse_sums(path.read_bytes(), str(path)))
            elif name == "dumpstatus.json":
                jobs = _jobs(path.read_bytes(), f"{folder}/")
                yield name, {file for known in _JOBS[job] if known in jobs for file in jobs[known].files}
        except OSError as error:
            raise DumpError(f"cannot read {path}: {error.strerror or error}; check the file") from error


def _select(names: Iterable[str], job: DumpJob, where: str) -> list[str]:
    """The XML files of the job in page order, then their index files; raises DumpError where one is missing."""
    names = set(names)
    chosen = select_xml(names, job, where)
    if job == "articles":
        return chosen
    indexes = [index_name(name) for name in chosen]
    if missing := [name for name in indexes if name not in names]:
        raise DumpError(f"{where} lists no {missing[0]}, the index of a multistream file; try dump_job = 'articles'")
    return chosen + indexes


def index_name(name: str) -> str:
    """The name of the index that belongs to a multistream file.

    >>> index_name("enwiki-20240801-pages-articles-multistream2.xml-p41243p151573.bz2")
    'enwiki-20240801-pages-articles-multistream-index2.txt-p41243p151573.bz2'
    """
    return name.replace("-multistream", "-multistream-index", 1).replace(".xml", ".txt", 1)
