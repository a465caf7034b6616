"""The pieces of work that the ingest benchmark measures, each a process of its own.

python -m tests.benchmarks.ingest_work text|mwparserfromhell|ingest|checks|profile IN OUT [WORKERS]
python -m tests.benchmarks.ingest_work dumps FOLDER MEGABYTES
"""

import cProfile
import json
import pstats
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from tests.benchmarks.ingest_dumps import bz2_dump, multistream_dump, plain_dump

FACTS = "facts.json"


def _articles(dump: Path) -> Iterator[str]:
    from rag.corpus.dump import read_pages

    return (page.wikitext for page in read_pages(dump) if page.namespace == 0 and page.redirect is None)


def dumps(folder: Path, megabytes: float) -> None:
    """The dump of a size in all its forms, where it is not there yet."""
    plain = plain_dump(folder, megabytes)
    bz2_dump(plain)
    multistream_dump(plain)


def text(dump: Path, out: Path) -> None:
    """The plain text of every article of a dump, as we make it."""
    from rag.corpus.wikitext import render

    _write_all(dump, out, lambda wikitext: render(wikitext).text)


def mwparserfromhell(dump: Path, out: Path) -> None:
    """The plain text of every article of a dump by mwparserfromhell's strip_code; the dump is read by our reader."""
    import mwparserfromhell as peer

    _write_all(dump, out, lambda wikitext: str(peer.parse(wikitext).strip_code()))


def _write_all(dump: Path, out: Path, plain: Callable[[str], str]) -> None:
    with out.open("w", encoding="utf-8") as file:
        for wikitext in _articles(dump):
            file.write(plain(wikitext))
            file.write("\n\n")


def ingest(dump: Path, out: Path, workers: int) -> None:
    """The whole ingest of a dump; its own clocks leave out what importing takes."""
    from rag.config import PassageConfig
    from rag.corpus.ingest.source import SourceSpec
    from rag.corpus.ingest.source import ingest as ingest_source

    shutil.rmtree(out, ignore_errors=True)
    wall, cpu = time.perf_counter(), _cpu_seconds()
    report = ingest_source(SourceSpec("en", (dump,), "mediawiki"), PassageConfig(), out, workers)
    clocks = {"wall_seconds": time.perf_counter() - wall, "cpu_seconds": _cpu_seconds() - cpu}
    (out / FACTS).write_text(json.dumps(asdict(report)))
    sys.stdout.write(json.dumps({**clocks, "passages": report.passages}) + "\n")


def checks(folder: Path) -> None:
    """The checks of an ingested folder, a second time: the first one loads what every later one has."""
    from data_checks.passages import check_source
    from rag.corpus.summary import summarise

    facts = json.loads((folder / FACTS).read_text())
    for _ in range(2):
        cpu = _cpu_seconds()
        summary = summarise(folder)._asdict()
        reports = list(check_source("en", folder, {**facts, "summary": summary}))
        seconds = _cpu_seconds() - cpu
    sys.stdout.write(json.dumps({"cpu_seconds": seconds, "reports": len(reports)}) + "\n")


def profile(dump: Path, out: Path) -> None:
    """Where the time of ``text`` goes."""
    profiler = cProfile.Profile()
    profiler.runcall(text, dump, out)
    pstats.Stats(profiler, stream=sys.stdout).sort_stats("tottime").print_stats(25)


def _cpu_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def main(arguments: list[str]) -> None:
    """Do one piece of work."""
    name, source, *rest = arguments
    match name:
        case "dumps":
            dumps(Path(source), float(rest[0]))
        case "text":
            text(Path(source), Path(rest[0]))
        case "mwparserfromhell":
            mwparserfromhell(Path(source), Path(rest[0]))
        case "ingest":
            ingest(Path(source), Path(rest[0]), int(rest[1]))
        case "checks":
            checks(Path(source))
        case "profile":
            profile(Path(source), Path(rest[0]))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
