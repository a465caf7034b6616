"""Settings of the machine: where things lie and how fast they run. None of them can change a result.

They come from the environment (``OPENBOOK_WORKSPACE=/data/openbook``) or from ``openbook.toml`` in the working
directory, the environment first. The science of a study is in ``rag.config``.
"""

import difflib
import os
import tempfile
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from rag.errors import ConfigError, ResourceError

SETTINGS_FILE = "openbook.toml"
_PREFIX = "OPENBOOK_"
_CONTAINER_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


class Settings(BaseSettings):
    """What the machine offers. Use ``load_settings``, which explains what is wrong."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, extra="forbid", frozen=True, toml_file=SETTINGS_FILE)

    workspace: Path = Path("openbook-workspace")  # artifacts, database and reports; relative to the working directory
    threads: int | None = Field(None, ge=1)  # of one process; None: every core it may use
    device: Literal["auto", "cpu", "cuda"] = "auto"
    workers: int | None = Field(None, ge=1)  # processes that read a dump; None: one for each core it may use
    encoders: int | None = Field(None, ge=1)  # processes that encode side by side; None: one, or one for each GPU
    # Encode by Ray: "local", or the address of a cluster ("ray://host:10001"), all of whose CPUs or GPUs are used. On
    # several machines openbook must be installed, and workspace and models must lie on a file system that all of them
    # see under the same path. A cluster that asks for its token needs RAY_AUTH_MODE=token here too.
    ray: str | None = Field(None, min_length=1)
    memory_gb: float | None = Field(None, gt=0)  # what openbook may use; None: what the machine has
    dumps_url: str = Field("https://dumps.wikimedia.org", pattern="^https?://.+")  # or a mirror of it
    download_attempts: int = Field(10, ge=1)  # in a row that bring nothing new, with pauses up to a minute
    proxy: str | None = None  # "http://host:port" for downloads; the environment's own proxies are not used

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003  (the signature is pydantic's)
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then the environment, then the file; no .env file and no folder of secrets."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    @property
    def artifacts_folder(self) -> Path:
        """Where the artifact store lies."""
        return self._root / "artifacts"

    @property
    def database_folder(self) -> Path:
        """Where the results database lies."""
        return self._root / "database"

    @property
    def reports_folder(self) -> Path:
        """Where reports are written."""
        return self._root / "reports"

    @property
    def worker_processes(self) -> int:
        """How many processes read a dump side by side."""
        return self.workers or self.cores

    @property
    def cores(self) -> int:
        """How many cores this process may use."""
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    @property
    def _root(self) -> Path:
        return self.workspace.expanduser().absolute()


def load_settings() -> Settings:
    """The settings of the environment and of ``openbook.toml``.

    Raises ConfigError with the key, its value and where it stands.
    """
    _reject_misspelt_variables()
    try:
        return Settings()
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{SETTINGS_FILE} is not valid TOML: {error}") from error
    except ValidationError as error:
        raise ConfigError(_explain(error.errors(include_url=False)[0])) from error


def compute_device(settings: Settings) -> str:
    """Where models compute: ``cuda`` where the settings allow it and there is one."""
    if settings.device != "auto":
        return settings.device
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def limit_threads(settings: Settings) -> None:
    """Let torch and FAISS, which read this when they are imported, use as many threads as the settings say."""
    if settings.threads:
        os.environ["OMP_NUM_THREADS"] = str(settings.threads)


def memory_bytes(settings: Settings) -> int:
    """How much memory openbook may use: what the settings say, else what the machine, or its container, has.

    Not what is free at the moment: what is chosen by it (``index.kind = "auto"``) must not change from call to call.

    >>> memory_bytes(Settings(memory_gb=1.5))
    1500000000
    """
    if settings.memory_gb is not None:
        return round(settings.memory_gb * 1e9)
    import psutil

    total: int = psutil.virtual_memory().total
    return min([total, *_container_limits()])


def _container_limits() -> list[int]:
    """What the control group of this process may use, where it is limited."""
    found = []
    for path in _CONTAINER_LIMITS:
        try:
            found.append(int(path.read_text()))
        except (OSError, ValueError):
            continue  # no such file, or "max"
    return found


def prepare_workspace(settings: Settings) -> None:
    """Make the folders of the workspace where they are missing.

    Raises ResourceError where one cannot be made or written.
    """
    for folder in (settings.artifacts_folder, settings.database_folder, settings.reports_folder):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise ResourceError(
                f"the workspace folder {folder} cannot be written ({error.strerror}); "
                "make it writable or set OPENBOOK_WORKSPACE to a folder that is"
            ) from error


def _explain(problem: Any) -> str:
    key = ".".join(str(part) for part in problem["loc"])
    name = key.lower().removeprefix(_PREFIX.lower())
    if problem["type"] == "extra_forbidden":
        return f"{SETTINGS_FILE}: unknown key {key!r}{_nearest(name)}"
    variable = f"{_PREFIX}{name.upper()}"
    where = variable if variable in os.environ else f"{SETTINGS_FILE}: {name}"
    return f"{where} = {problem['input']!r}: {problem['msg']}"


def _nearest(name: str) -> str:
    known = list(Settings.model_fields)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(known)}"


def _reject_misspelt_variables() -> None:
    """A variable that is nearly one of ours is a slip; others with the prefix may belong to somebody else."""
    known = {f"{_PREFIX}{name.upper()}" for name in Settings.model_fields}
    for variable in os.environ:
        if variable.upper().startswith(_PREFIX) and variable.upper() not in known:
            close = difflib.get_close_matches(variable.upper(), known, n=1, cutoff=0.85)
            if close:
                raise ConfigError(f"unknown variable {variable}; did you mean {close[0]}?")
