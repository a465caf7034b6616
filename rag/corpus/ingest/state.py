"""How far an ingest has come, in a small file beside its shards, so that a killed one goes on from there.

The file stays when the ingest is done, so that one that is repeated, because its caller was killed, returns at once.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from rag.config import PassageConfig
from rag.corpus.ingest.batches import SourceSpec
from rag.corpus.ingest.ledger import LEDGERS
from rag.corpus.passages import SHARDS
from rag.files import publish

REJECTS_FILE = "rejects.jsonl"
DUPLICATES_FILE = "duplicates.parquet"
# Hidden: they are no part of the result.
REJECTS_ON_THE_WAY = f".{REJECTS_FILE}.tmp"
_NAME = ".ingest-state.json"
_TEMPORARY = ".ingest-state.json.tmp"  # always the same, so that a kill leaves one at most


@dataclass(frozen=True)
class IngestState:
    """What has been written and synced, and where the next batch begins."""

    identity: str  # of the input files and the options
    shards: int = 0
    part: int = 0
    batch: int = 0  # of that part
    pages_of_part: int = 0
    reject_bytes: int = 0
    rejects: int = 0
    unreadable: int = 0
    pages_done: bool = False
    duplicates: dict[str, int] | None = None  # counted and listed; before any was dropped


def inputs_identity(spec: SourceSpec, options: PassageConfig) -> str:
    """A hash of the options and of path, size and time of every input file."""
    files = [file for path in spec.paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    stats = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.is_file()]
    content = repr((spec, sorted(options.model_dump().items()), stats))
    return hashlib.sha256(content.encode()).hexdigest()


def load_state(folder: Path, identity: str) -> IngestState:
    """The state of a stopped or finished ingest of the same inputs into this folder; else that of one not begun."""
    try:
        state = IngestState(**json.loads((folder / _NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return IngestState(identity)
    return state if state.identity == identity and _is_there(folder, state) else IngestState(identity)


def _is_there(folder: Path, state: IngestState) -> bool:
    """Whether the files that the state tells of are in the folder."""
    rejects = [folder / name for name in (REJECTS_FILE, REJECTS_ON_THE_WAY)]
    shards = [len(list(folder.glob(pattern))) for pattern in (SHARDS, LEDGERS)]
    kept = max((path.stat().st_size for path in rejects if path.exists()), default=-1)
    listed = state.duplicates is None or (folder / DUPLICATES_FILE).exists()
    return min(shards) >= state.shards and kept >= state.reject_bytes and listed


def save_state(folder: Path, state: IngestState) -> None:
    """Keep the state; call it when all that it tells of is synced."""
    (folder / _TEMPORARY).write_text(json.dumps(asdict(state)), encoding="utf-8")
    publish(folder / _TEMPORARY, folder / _NAME)
