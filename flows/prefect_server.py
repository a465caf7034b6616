"""The embedded Prefect server: a process of its own that ends with the process that started it.

Run as a script by ``flows.orchestrator`` with three arguments: the descriptor of a listening socket, the process
to outlive by less than a second, and the temporary home. Prefect's own temporary server is not used because it
survives a killed parent and takes twice as long to start: most of its time goes into replaying every migration of
Prefect's history on an empty database, where creating today's tables is enough.
"""

import os
import shutil
import socket
import sys
import threading
import time
from pathlib import Path

_CHECK_SECONDS = 0.3


def main(descriptor: int, parent: int, home: Path) -> None:
    """Serve until told to stop, or until the parent is gone; then remove the home and end."""
    threading.Thread(target=_end_with, args=(parent, home), daemon=True).start()
    import asyncio

    import uvicorn

    listener = socket.socket(fileno=descriptor)
    asyncio.run(_create_tables())
    config = uvicorn.Config(
        "prefect.server.api.server:create_app", factory=True, log_level="error", lifespan="on", access_log=False
    )
    uvicorn.Server(config).run(sockets=[listener])


def _end_with(parent: int, home: Path) -> None:
    # A poll and not a signal from the kernel: after a kill -9 of the parent the home still has to be removed.
    while os.getppid() == parent:
        time.sleep(_CHECK_SECONDS)
    shutil.rmtree(home, ignore_errors=True)
    os._exit(0)


async def _create_tables() -> None:
    from prefect.server.database import provide_database_interface

    database = provide_database_interface()
    metadata = database.Base.metadata
    for table in metadata.tables.values():
        # some indexes are declared twice under one name, which create_all does not survive on SQLite
        table.indexes.intersection_update({index.name: index for index in table.indexes}.values())
    engine = await database.engine()
    async with engine.begin() as connection:
        await connection.run_sync(metadata.create_all)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
