"""Prefect around a command: the server that is configured, or an embedded one that leaves nothing behind.

Nothing here runs at import. ``with orchestrator():`` sets the environment first and imports Prefect after it,
because Prefect reads its settings while it is imported.
"""

import importlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from rag.errors import ConfigError, ResourceError

_QUIET = {
    # nobody is told what runs here
    "DO_NOT_TRACK": "1",
    "GX_ANALYTICS_ENABLED": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "RAY_USAGE_STATS_ENABLED": "0",
    # libraries keep their own bars and advice off the terminal; TOKENIZERS_PARALLELISM stays as it is, because
    # its default is right: threads until the first fork, none after
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    # threads that wait for work sleep: spinning, the default, costs several times the work itself as soon as
    # another process wants the same cores
    "OMP_WAIT_POLICY": "passive",
}
_NO_LOG_LINES = {"PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL", "PREFECT_INTERNAL_LOGGING_LEVEL": "CRITICAL"}
_EMBEDDED_CLIENT = {"PREFECT_LOGGING_TO_API_ENABLED": "false"}  # its database is gone with the last flow
_EMBEDDED_SERVER = {
    "PREFECT__SERVER_EPHEMERAL": "1",
    "PREFECT__SERVER_FINAL": "1",
    "PREFECT_API_BLOCKS_REGISTER_ON_START": "false",
    "PREFECT_API_DATABASE_MIGRATE_ON_START": "false",  # flows.prefect_server creates the tables
    "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",
    "PREFECT_SERVER_UI_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_CANCELLATION_CLEANUP_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": "false",
}
_HOME_PREFIX = "openbook-prefect-"
_START_SECONDS = 120.0
_ABANDONED_SECONDS = 3600.0


class Orchestrator(NamedTuple):
    """The Prefect that flows run under."""

    api_url: str
    embedded: bool


def quiet_environment() -> None:
    """Switch the libraries' telemetry and chatter off; a variable that is set already stays as it is."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)


@contextmanager
def orchestrator(verbose: bool = False, meanwhile: Callable[[], object] | None = None) -> Iterator[Orchestrator]:
    """Run flows inside: on the configured Prefect server, or on an embedded one where none is.

    ``meanwhile`` is called while the embedded server starts (some seconds); give it the imports that the command
    needs anyway. With ``verbose`` Prefect's log lines go to the standard error, without it none do. The embedded
    server, its home and its database are gone at the end, even after ``kill -9`` of this process.

    Raises ConfigError where the configured server does not answer, ResourceError where none can be started.
    """
    quiet_environment()
    chatter = {} if verbose else _NO_LOG_LINES
    configured = _configured_api_url()
    if configured:
        _require_answer(configured)
        with _environment(chatter):
            _load_prefect(meanwhile)
            yield Orchestrator(configured, embedded=False)
        return
    with _embedded_server() as server, _environment({**chatter, **_EMBEDDED_CLIENT, **server.environment}):
        _load_prefect(meanwhile)
        server.wait()
        try:
            with _without_heartbeats():
                yield Orchestrator(server.api_url, embedded=True)
        finally:
            _send_what_is_left()


def _configured_api_url() -> str | None:
    """The server of the environment, of a profile or of a Prefect file in the working directory."""
    if os.environ.get("PREFECT_API_URL"):
        return os.environ["PREFECT_API_URL"]
    home = Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect")
    profiles = Path(os.environ.get("PREFECT_PROFILES_PATH") or home / "profiles.toml")
    if not any(_mentions_prefect(path) for path in (profiles, *map(Path, (".env", "prefect.toml", "pyproject.toml")))):
        return None  # the usual case, known without the second that importing Prefect takes
    settings = importlib.import_module("prefect.settings")
    url: str | None = settings.get_current_settings().api.url
    return url


def _mentions_prefect(path: Path) -> bool:
    try:
        text = path.read_text(encoding="utf-8", errors="replace").lower()
    except OSError:
        return False
    return "prefect_api_url" in text or "tool.prefect" in text or path.name == "prefect.toml"


def _require_answer(api_url: str) -> None:
    import httpx

    try:
        httpx.get(f"{api_url.rstrip('/')}/health", timeout=10)
    except httpx.HTTPError as error:
        raise ConfigError(
            f"the Prefect server {api_url} does not answer ({type(error).__name__}): start it with "
            "`prefect server start`, or unset PREFECT_API_URL (or the profile that names it) to run without one"
        ) from error


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    was_imported = "prefect" in sys.modules
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if was_imported:  # else nobody uses Prefect outside, and reading its settings would make ~/.prefect
            _reread_settings()


def _load_prefect(meanwhile: Callable[[], object] | None) -> None:
    importlib.import_module("prefect")
    _reread_settings()  # for a process that has imported Prefect under another environment
    if meanwhile:
        meanwhile()


def _reread_settings() -> None:
    if "prefect.context" in sys.modules:
        sys.modules["prefect.context"].refresh_global_settings_context()
        sys.modules["prefect.logging.configuration"].setup_logging()


@contextmanager
def _without_heartbeats() -> Iterator[None]:
    """Heartbeats tell a server that lives on of a flow that died; here they only cost every flow a second."""
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        yield


def _send_what_is_left() -> None:
    """Wait for the client's queues, so that nothing of it tries to reach a server that has stopped."""
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker

    APILogWorker.drain_all(timeout=10, at_exit=False)
    EventsWorker.drain_all(timeout=10, at_exit=False)


class _Server(NamedTuple):
    process: "subprocess.Popen[bytes]"
    home: Path
    api_url: str

    @property
    def environment(self) -> dict[str, str]:
        return {"PREFECT_API_URL": self.api_url, "PREFECT_HOME": str(self.home)}

    def wait(self) -> None:
        """Return when the server answers. Raises ResourceError, with the end of its log, where it does not."""
        import httpx

        try:  # the socket listens from the start, so one request waits for as long as it takes
            httpx.get(f"{self.api_url}/health", timeout=_START_SECONDS).raise_for_status()
        except httpx.HTTPError as error:
            log = (self.home / "server.log").read_text(errors="replace").strip()
            last = log.splitlines()[-1] if log else "it says nothing"
            raise ResourceError(f"the embedded Prefect server did not start in {self.home}: {last}") from error


@contextmanager
def _embedded_server() -> Iterator[_Server]:
    _remove_leftovers()
    try:
        home = Path(tempfile.mkdtemp(prefix=_HOME_PREFIX))
    except OSError as error:
        raise ResourceError(f"no temporary folder can be made: {error}; free some space or set TMPDIR") from error
    with FileLock(_owner_lock(home)):
        server = _start(home)
        try:
            yield server
        finally:
            server.process.kill()  # what it knows is of no use any more
            server.process.wait()
            shutil.rmtree(home, ignore_errors=True)


def _start(home: Path) -> _Server:
    script = Path(__file__).with_name("prefect_server.py")
    with socket.create_server(("127.0.0.1", 0)) as listener, (home / "server.log").open("wb") as log:
        process = subprocess.Popen(
            # -P: the script's folder stays off the path, where names of ours would hide others
            [sys.executable, "-P", str(script), str(listener.fileno()), str(os.getpid()), str(home)],
            env={**_without_prefect(os.environ), **_EMBEDDED_SERVER, "PREFECT_HOME": str(home)},
            cwd=home,  # and its settings do not come from the user's working directory
            pass_fds=[listener.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches the flow, which still needs the server to say so
        )
        return _Server(process, home, f"http://127.0.0.1:{listener.getsockname()[1]}/api")


def _without_prefect(environment: Mapping[str, str]) -> dict[str, str]:
    kept = "PREFECT_SERVER_ANALYTICS_ENABLED"
    return {name: value for name, value in environment.items() if not name.startswith("PREFECT_") or name == kept}


def _owner_lock(home: Path) -> Path:
    return home / "owner.lock"


def _remove_leftovers() -> None:
    """Remove the homes whose processes were killed together with their servers."""
    for home in Path(tempfile.gettempdir()).glob(f"{_HOME_PREFIX}*"):
        with suppress(OSError):  # somebody else's, or gone in the meantime
            if home.stat().st_uid == os.getuid() and _is_abandoned(home):
                shutil.rmtree(home, ignore_errors=True)


def _is_abandoned(home: Path) -> bool:
    if not _owner_lock(home).exists():  # made a moment ago, or cut short between two lines of this module
        return time.time() - home.stat().st_mtime > _ABANDONED_SECONDS
    try:
        with FileLock(_owner_lock(home)).acquire(timeout=0):
            return True
    except Timeout:
        return False
