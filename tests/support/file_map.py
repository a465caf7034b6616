"""The README's file map, from the first line of each docstring; ``python -m tests.support.file_map`` renews it."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- file map -->", "<!-- end of the file map -->"
_PACKAGES = ("flows", "rag", "data_checks", "reports")
_OTHERS = {
    "flows/studies/*.toml": "studies that come along; each is a whole study",
    "rag/demo/*.csv": "the demo's facts: countries and offices; `SOURCES.md` says from where",
    "reports/schema.sql": "the results database: every table, column and view, with comments",
    "reports/templates/": "the report's page",
    "tests/unit, property, golden": "fast tests, invariants against slow oracles, numbers of official scorers",
    "tests/integration": "real processes: whole studies, killed studies, servers, a browser",
    "tests/support": "tiny models, the float64 oracle, a tiny study",
}


def file_map() -> str:
    """The section between the two marks."""
    rows = [f"| `{path}` | {line} |" for path, line in [*_modules(), *_OTHERS.items()]]
    return "\n".join([BEGIN, "## The files", "", "| file | what it is |", "| --- | --- |", *rows, END])


def _modules() -> Iterator[tuple[str, str]]:
    for package in _PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py"), key=lambda path: (path.parent.parts, path.name)):
            docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
            if docstring:
                yield path.relative_to(ROOT).as_posix(), docstring.splitlines()[0].rstrip(".").replace("|", "\\|")


def with_map(readme: str) -> str:
    """The README with its map renewed."""
    before, _, rest = readme.partition(BEGIN)
    after = rest.partition(END)[2] if END in rest else rest
    return before + file_map() + after


if __name__ == "__main__":
    path = ROOT / "README.md"
    path.write_text(with_map(path.read_text(encoding="utf-8")), encoding="utf-8")
