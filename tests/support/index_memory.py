"""How much memory a build takes, in a process of its own: python -m tests.support.index_memory KIND ROWS DIM FOLDER."""

import json
import sys
import threading
from pathlib import Path

import numpy as np

from rag.config import IndexConfig
from rag.retrieval.index_build import build_index

CONFIG = IndexConfig(m=8, ef_construction=10)


def main(kind: str, rows: int, dim: int, folder: Path) -> None:
    """Print the growth of the process's own memory (not that of mapped files) at its peak, and the index's bytes."""
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    build_index(vectors[:300], CONFIG, kind=kind)  # type: ignore[arg-type]  (libraries allocate at first use)
    before, peak, done = _own_bytes(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            peak[0] = max(peak[0], _own_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    index = build_index(vectors[:rows, :dim], CONFIG, kind=kind)  # type: ignore[arg-type]
    done.set()
    watcher.join()
    index.save(folder / kind)
    size = (folder / kind / "index.faiss").stat().st_size
    sys.stdout.write(json.dumps({"peak": peak[0] - before, "index": size}))


def _own_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("RssAnon:")[2].split()[0])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
