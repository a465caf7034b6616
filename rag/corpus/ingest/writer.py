"""Batches to shards and rejects, with the state kept after every shard."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from rag.corpus.ingest.ledger import LEDGERS
from rag.corpus.ingest.pages import Batch, Made
from rag.corpus.ingest.shards import Shard
from rag.corpus.ingest.state import DUPLICATES_FILE, REJECTS_FILE, REJECTS_ON_THE_WAY, IngestState, save_state
from rag.corpus.passages import SHARDS
from rag.files import publish


class IngestWriter:
    """The folder of an ingest as it grows; what is closed is in ``state``."""

    def __init__(self, folder: Path, state: IngestState, ledger_schema: pa.Schema) -> None:
        """Go on from ``state``: what it does not know of, half a shard or all of another ingest, is removed."""
        self.state = state
        self._folder = folder
        self._schema = ledger_schema
        self._shard: Shard | None = None
        _remove_after(folder, state)
        self._rejects = (folder / REJECTS_ON_THE_WAY).open("ab")
        self._rejects.truncate(state.reject_bytes)

    def add(self, batch: Batch, made: Made) -> None:
        """The next batch; closes the shard if it is full."""
        self._shard = self._shard or Shard(self._folder, self.state.shards, self._schema)
        self._shard.add(made.passages, made.ledger)
        for reject in made.rejects:
            self._rejects.write(json.dumps(reject, ensure_ascii=False).encode() + b"\n")
        known = self.state.pages_of_part if batch.part == self.state.part else 0
        self.state = replace(
            self.state,
            part=batch.part,
            batch=batch.number + 1,
            pages_of_part=known + made.pages,
            rejects=self.state.rejects + len(made.rejects),
            unreadable=self.state.unreadable + made.unreadable,
        )
        if self._shard.is_full:
            self._close_shard()

    def finish(self) -> IngestState:
        """Close the last shard, an empty one where there is no other, and give the rejects their name."""
        if self._shard is None and not self.state.shards:
            self._shard = Shard(self._folder, 0, self._schema)
        if self._shard:
            self._close_shard()
        self._rejects.close()
        publish(self._folder / REJECTS_ON_THE_WAY, self._folder / REJECTS_FILE)
        self.state = replace(self.state, pages_done=True)
        save_state(self._folder, self.state)
        return self.state

    def abandon(self) -> None:
        """Let go of what is not closed."""
        self._rejects.close()
        if self._shard:
            self._shard.discard()

    def _close_shard(self) -> None:
        assert self._shard
        self._shard.close()
        self._shard = None
        self._rejects.flush()
        os.fsync(self._rejects.fileno())
        self.state = replace(self.state, shards=self.state.shards + 1, reject_bytes=self._rejects.tell())
        save_state(self._folder, self.state)


def _remove_after(folder: Path, state: IngestState) -> None:
    for pattern in (SHARDS, LEDGERS):
        for path in sorted(folder.glob(pattern))[state.shards :]:
            path.unlink()
    if (folder / REJECTS_FILE).exists():  # from before a kill between the last rename and the last state
        (folder / REJECTS_FILE).replace(folder / REJECTS_ON_THE_WAY)
    (folder / DUPLICATES_FILE).unlink(missing_ok=True)
