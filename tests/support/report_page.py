"""A report as a browser would find it, and stores that differ from the fixture's in some tables."""

import shutil
from html.parser import HTMLParser
from pathlib import Path

from reports.store import Store
from tests.support.report_fixture import RUN


class Page(HTMLParser):
    """What a browser would find: elements, ids, references, and text that is not style."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "br", "link", "img", "use", "path"):
            self._open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "xlink:href", "data", "action", "srcset"):
                self.references.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text += data


def changed(store: Store, folder: Path, changes: dict[str, list[dict[str, object]]], run_id: str = RUN) -> Store:
    """A copy of the store with other rows in some tables of a run."""
    shutil.copyfile(store.path, folder / "results.duckdb")
    copy = Store(folder)
    with copy.write() as session:
        for table, rows in changes.items():
            session.replace(table, {"run_id": run_id}, rows)
    copy.publish()
    return copy
