"""Settings of the machine: where they come from, and what is said about a wrong one."""

from pathlib import Path

import pytest

from flows import settings as module
from flows.settings import load_settings, memory_bytes, prepare_workspace
from rag.errors import ConfigError, ResourceError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("WORKSPACE", "THREADS", "DEVICE", "RUNNER"):
        monkeypatch.delenv(f"OPENBOOK_{name}", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_defaults(folder: Path) -> None:
    settings = load_settings()
    assert (settings.threads, settings.device) == (None, "auto")
    assert settings.artifacts_folder == folder / "openbook-workspace" / "artifacts"


def test_the_environment_wins_over_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "openbook.toml").write_text('workspace = "/from/file"\nthreads = 3\n')
    monkeypatch.setenv("OPENBOOK_WORKSPACE", "/from/environment")
    settings = load_settings()
    assert (settings.workspace, settings.threads) == (Path("/from/environment"), 3)


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("thread = 2", r"openbook\.toml: unknown key 'thread'; did you mean 'threads'\?"),
        ("colour = 'red'", r"openbook\.toml: unknown key 'colour'; known: workspace, threads, device"),
        ("threads = 0", r"openbook\.toml: threads = 0: .*greater than or equal to 1"),
        ("threads =", r"openbook\.toml is not valid TOML"),
    ],
)
def test_a_wrong_file_names_the_key(folder: Path, toml: str, message: str) -> None:
    (folder / "openbook.toml").write_text(toml)
    with pytest.raises(ConfigError, match=message):
        load_settings()


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("OPENBOOK_THREADS", "many", r"OPENBOOK_THREADS = 'many': "),
        ("OPENBOOK_DEVICE", "tpu", r"OPENBOOK_DEVICE = 'tpu': .*'auto', 'cpu' or 'cuda'"),
        ("OPENBOOK_WORKSPCE", "/data", r"unknown variable OPENBOOK_WORKSPCE; did you mean OPENBOOK_WORKSPACE\?"),
    ],
)
def test_a_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=message):
        load_settings()


def test_variables_of_others_with_the_prefix_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBOOK_TEST_DATA", "/data")
    assert load_settings().device == "auto"


def test_the_workspace_is_made(folder: Path) -> None:
    prepare_workspace(load_settings())
    assert sorted(path.name for path in (folder / "openbook-workspace").iterdir()) == [
        "artifacts",
        "database",
        "reports",
    ]


def test_a_workspace_that_cannot_be_written_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "file").write_text("")
    monkeypatch.setenv("OPENBOOK_WORKSPACE", str(folder / "file" / "workspace"))
    with pytest.raises(
        ResourceError, match=r"file/workspace/artifacts cannot be written \(Not a directory\)"
    ) as caught:
        prepare_workspace(load_settings())
    assert "\n" not in str(caught.value)


def test_memory_is_what_the_settings_the_container_or_the_machine_allow(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = memory_bytes(load_settings())
    assert whole > 10**8
    limit = folder / "memory.max"
    monkeypatch.setattr(module, "_CONTAINER_LIMITS", (folder / "none", limit))
    limit.write_text("max\n")
    assert memory_bytes(load_settings()) >= whole
    limit.write_text("100000000\n")
    assert memory_bytes(load_settings()) == 100_000_000
    monkeypatch.setenv("OPENBOOK_MEMORY_GB", "0.5")
    assert memory_bytes(load_settings()) == 500_000_000
