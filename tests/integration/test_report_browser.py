"""The report in a real browser: it opens without the network, and what it shows is on the page."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from reports.render import render_html
from tests.support.report_fixture import RUN, SCRIPT, filled_store

pytestmark = pytest.mark.integration

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--virtual-time-budget=2000",
    "--window-size=1200,3000",
)


@pytest.fixture(scope="module")
def browser() -> str:
    found = next((path for path in map(shutil.which, _NAMES) if path), None)
    if found is None:
        pytest.skip(f"no browser here: looked for {', '.join(_NAMES)}")
    return found


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    return render_html(filled_store(folder), RUN, folder / "report.html")


def _browse(browser: str, profile: Path, *arguments: str) -> str:
    command = [browser, *_OPTIONS, f"--user-data-dir={profile}", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def test_the_report_is_drawn(browser: str, report: Path, tmp_path: Path) -> None:
    shot = tmp_path / "report.png"
    _browse(browser, tmp_path / "profile", f"--screenshot={shot}", report.as_uri())
    header = shot.read_bytes()[:24]
    assert header.startswith(b"\x89PNG")
    assert struct.unpack(">II", header[16:24]) == (1200, 3000)
    assert shot.stat().st_size > 100_000  # a blank page of that size has a few thousand bytes


def test_the_browser_finds_no_script_and_all_sections(browser: str, report: Path, tmp_path: Path) -> None:
    document = _browse(browser, tmp_path / "profile", "--dump-dom", report.as_uri())
    assert "<script" not in document
    assert SCRIPT.replace("<", "&lt;").replace(">", "&gt;") in document
    assert document.count("<section") > 20
    for figure in ("scores", "tradeoff"):
        assert document.count(f'<title id="{figure}-title">') == 1
