"""Memory that does not grow with the dump: measured on a process of its own, by its largest resident set."""

import gzip
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dump_fixtures import CLOSING, Revision, header_xml, page_xml, text_xml

# Peak memory only ever rises, so one process tells what the second, four times larger dump adds to the first.
_READ = """
import re, sys
from pathlib import Path
from rag.corpus.dump import read_pages
for path in map(Path, sys.argv[1:]):
    pages = sum(1 for _ in read_pages(path))
    # Not ru_maxrss: a new process is accounted the memory of the one that it is a copy of at first.
    print(pages, int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) // 1024)
"""
_TEXT = text_xml("word " * 2000)
_LARGE_MB, _LIMIT_MB = 60, 500


def _many_pages(megabytes: int) -> Iterator[str]:
    return (page_xml(number, f"Page {number}", Revision(number, text=_TEXT)) for number in range(1, megabytes * 100))


def _one_long_history(megabytes: int) -> Iterator[str]:
    yield page_xml(1, "A", Revision(0)).split("    <revision>")[0]
    yield from (Revision(number, text=_TEXT).xml() for number in range(megabytes * 100))
    yield "  </page>\n"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the largest resident set is read from /proc")
@pytest.mark.parametrize("packing", ["plain", "gz"])
@pytest.mark.parametrize(("kind", "pages"), [(_many_pages, 5999), (_one_long_history, 1)])
def test_memory_does_not_grow_with_the_dump(tmp_path: Path, packing: str, kind: object, pages: int) -> None:
    paths = [tmp_path / f"{megabytes}" for megabytes in (_LARGE_MB // 4, _LARGE_MB)]
    for path in paths:
        with path.open("wb") if packing == "plain" else gzip.open(path, "wb", 1) as file:
            file.write(header_xml().encode())
            file.writelines(text.encode() for text in kind(int(path.name)))  # type: ignore[operator]
            file.write(CLOSING.encode())
    command = [sys.executable, "-c", _READ, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    (_, small), (count, large) = (map(int, line.split()) for line in done.stdout.splitlines())
    assert count == pages
    assert large - small < 12
    assert large < _LIMIT_MB
