"""How fast and how lean the ingest is, beside WikiExtractor and mwparserfromhell.

python -m tests.benchmarks.ingest [--mb 200] [--quick] [--scratch DIR] [--wikiextractor PATH] [--profile]

The real sample dump, repeated to the size asked for with fixed seeds, to text, by one process, in CPU seconds of that
process and its children, start-up included. Then our whole ingest: by two workers against one (wall time, so let
nothing else run), by size, and the share of its checks. A JSON line for each measurement; the last one has the
``ratios``: ``vs_...`` is how many times as fast as that peer, from bz2 where it does not say plain (mwparserfromhell on
a small part); ``two_processes`` how many times as fast as one; ``time_linearity`` seconds a megabyte at 4x over those
at 1x; ``checks_share`` CPU seconds of the checks over those of the ingest. ``--scratch`` keeps the dumps for next time.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from tests.benchmarks.ingest_dumps import bz2_dump, multistream_dump, plain_dump
from tests.benchmarks.ingest_peers import (
    count_cases,
    find_wikiextractor,
    require_mwparserfromhell,
    wikiextractor_command,
)

_ROOT = Path(__file__).resolve().parents[2]
_SLOW_PEER_MEGABYTES = 6  # its speed does not depend on the size; never more than a quarter of the whole
_WORKERS = (1, 2)


class Run(NamedTuple):
    """What one process took."""

    cpu_seconds: float
    wall_seconds: float
    peak_rss_mb: float  # of the largest of it and its children
    output: str


class _Plan(NamedTuple):
    megabytes: float
    repeats: int
    scratch: Path
    wikiextractor: str


def run(command: list[str]) -> Run:
    """Run a program and its children to their end; stops the benchmark with its last words if it fails."""
    start = time.perf_counter()
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, cwd=_ROOT, text=True) as process,
    ):
        output = process.stdout.read() if process.stdout else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)} failed:\n{errors.read().decode(errors='replace')[-2000:]}")
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return Run(usage.ru_utime + usage.ru_stime, time.perf_counter() - start, usage.ru_maxrss / unit, output)


def show(measurement: str, **values: Any) -> None:
    """One JSON line."""
    rounded = {name: round(value, 3) if isinstance(value, float) else value for name, value in values.items()}
    sys.stdout.write(json.dumps({"measurement": measurement, **rounded}) + "\n")
    sys.stdout.flush()


def work(name: str, *arguments: Path | float) -> list[str]:
    """The command of one of our own pieces of work."""
    return [sys.executable, "-m", "tests.benchmarks.ingest_work", name, *map(str, arguments)]


def dump_to_text(plan: _Plan) -> dict[str, float]:
    """Ours against the peers, from bz2 and from plain XML."""
    plain = plain_dump(plan.scratch, plan.megabytes)
    sources = {"bz2": bz2_dump(plain), "plain": plain}
    ratios = {}
    for name, dump in sources.items():
        ours, theirs = _alternating(plan, name, dump)
        ratios[name] = theirs / ours
        bare = _measured("wikiextractor_no_templates", name, dump, _wikiextractor(plan, dump, "--no-templates"))
        ratios[f"{name}_no_templates"] = bare / ours
    small = plain_dump(plan.scratch, _small(plan))
    for name, dump in {"bz2": bz2_dump(small), "plain": small}.items():
        out = plan.scratch / "text"
        ours = _measured("ours", name, dump, work("text", dump, out))
        theirs = _measured("mwparserfromhell", name, dump, work("mwparserfromhell", dump, out))
        ratios[f"{name}_mwparserfromhell"] = theirs / ours
    return {
        "vs_wikiextractor": ratios["bz2"],
        "vs_wikiextractor_plain": ratios["plain"],
        "vs_wikiextractor_no_templates": ratios["bz2_no_templates"],
        "vs_wikiextractor_no_templates_plain": ratios["plain_no_templates"],
        "vs_mwparserfromhell": ratios["bz2_mwparserfromhell"],
        "vs_mwparserfromhell_plain": ratios["plain_mwparserfromhell"],
    }


def _small(plan: _Plan) -> float:
    return min(_SLOW_PEER_MEGABYTES, plan.megabytes / 4)


def _alternating(plan: _Plan, name: str, dump: Path) -> tuple[float, float]:
    """The least CPU seconds of ours and of WikiExtractor, which take turns."""
    pairs = [
        (
            _measured("ours", name, dump, work("text", dump, plan.scratch / "text")),
            _measured("wikiextractor", name, dump, _wikiextractor(plan, dump)),
        )
        for _ in range(plan.repeats)
    ]
    return min(ours for ours, _ in pairs), min(theirs for _, theirs in pairs)


def _wikiextractor(plan: _Plan, dump: Path, *options: str) -> list[str]:
    out = plan.scratch / "wikiextractor"
    shutil.rmtree(out, ignore_errors=True)
    return wikiextractor_command(plan.wikiextractor, dump, out, *options)


def _measured(tool: str, source: str, dump: Path, command: list[str]) -> float:
    took = run(command)
    megabytes = _xml_megabytes(dump)
    speeds = {"cpu_seconds": took.cpu_seconds, "mb_per_cpu_second": megabytes / took.cpu_seconds}
    show("dump_to_text", tool=tool, source=source, megabytes=megabytes, **speeds, peak_rss_mb=took.peak_rss_mb)
    return took.cpu_seconds


def _xml_megabytes(dump: Path) -> float:
    return dump.with_name("pages-articles.xml").stat().st_size / 1e6


def two_processes(plan: _Plan) -> float:
    """Wall time of the whole ingest with one worker over that with two; the best of several, in turns.

    On twice the size, for two processes pay twice for their start, which a dump worth two processes does not notice.
    """
    dump = multistream_dump(plain_dump(plan.scratch, 2 * plan.megabytes))
    walls: dict[int, list[float]] = {workers: [] for workers in _WORKERS}
    for _ in range(plan.repeats):
        for workers in _WORKERS:
            took = run(work("ingest", dump, plan.scratch / "passages", workers))
            clocks = json.loads(took.output)
            walls[workers].append(clocks["wall_seconds"])
            show("ingest", workers=workers, megabytes=_xml_megabytes(dump), **clocks, peak_rss_mb=took.peak_rss_mb)
    return min(walls[1]) / min(walls[2])


def by_size(plan: _Plan) -> dict[str, Any]:
    """Memory and time of the ingest of a quarter, a half and the whole, and what its checks add."""
    seconds, peaks, sizes = [], [], []
    out = plan.scratch / "passages"
    for part in (4, 2, 1):
        dump = bz2_dump(plain_dump(plan.scratch, plan.megabytes / part))
        took = run(work("ingest", dump, out, 1))
        clocks = json.loads(took.output)
        seconds.append(clocks["cpu_seconds"])
        peaks.append(took.peak_rss_mb)
        sizes.append(_xml_megabytes(dump))
        show("ingest_by_size", megabytes=sizes[-1], **clocks, peak_rss_mb=took.peak_rss_mb)
    checks = json.loads(run(work("checks", out)).output)
    show("checks", **checks)
    return {
        "peak_rss_mb": dict(zip(("1x", "2x", "4x"), map(round, peaks), strict=True)),
        "time_linearity": (seconds[2] / sizes[2]) / (seconds[0] / sizes[0]),
        "checks_share": checks["cpu_seconds"] / seconds[2],
    }


def show_machine() -> None:
    """What the numbers depend on."""
    models = [line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    packages = {name: version(name) for name in ("lxml", "pyarrow", "mwparserfromhell")}
    show("machine", cpu=models[0] if models else platform.processor(), cores=os.cpu_count(), load=os.getloadavg()[0],
         python=platform.python_version(), **packages)  # fmt: skip


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def measure(plan: _Plan) -> None:
    """All measurements of the module's docstring."""
    show_machine()
    for megabytes in (_small(plan), plan.megabytes / 4, plan.megabytes / 2, plan.megabytes, 2 * plan.megabytes):
        # Not here: a new process is accounted the memory of the one that it is a copy of at first.
        run(work("dumps", plan.scratch, megabytes))
    ratios: dict[str, Any] = dump_to_text(plan)
    ratios["two_processes"] = two_processes(plan)
    ratios |= by_size(plan)
    cases = count_cases(plan.wikiextractor, plan.scratch)
    show("cases", **cases._asdict())
    rounded = {name: round(value, 3) if isinstance(value, float) else value for name, value in ratios.items()}
    show("ratios", megabytes=plan.megabytes, ratios={**rounded, "cases": cases._asdict()})


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=200, help="of XML, at least")
    parser.add_argument("--quick", action="store_true", help="6 MB, each once: whether it works, not how fast it is")
    parser.add_argument(
        "--repeats", type=int, default=2, help="of ours and of the main peer, in turns; the best counts"
    )
    parser.add_argument("--scratch", type=Path, help="a folder to work in and to keep the dumps in")
    parser.add_argument("--wikiextractor", help="the program, if it is neither on PATH nor beside this Python")
    parser.add_argument("--profile", action="store_true", help="only show where the time of ours goes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ingest-benchmark-") as folder:
        scratch = (options.scratch or Path(folder)).resolve()
        scratch.mkdir(parents=True, exist_ok=True)
        if options.profile:
            dump = plain_dump(scratch, 6 if options.quick else min(options.mb, 24))
            sys.stdout.write(run(work("profile", dump, scratch / "text")).output)
            return
        require_mwparserfromhell()
        wikiextractor = find_wikiextractor(options.wikiextractor)
        megabytes, repeats = (6, 1) if options.quick else (options.mb, options.repeats)
        measure(_Plan(megabytes, repeats, scratch, wikiextractor))


if __name__ == "__main__":
    main()
