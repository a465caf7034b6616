"""The command as a person calls it: a process of its own, in a workspace of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

OPENBOOK = [sys.executable, "-c", "from flows.cli import main; main()"]


def environment(workspace: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """No Prefect server, no settings of the person who runs the tests, one thread."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENBOOK_", "PREFECT_"))}
    own = {"OPENBOOK_WORKSPACE": str(workspace), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "COLUMNS": "160"}
    return {**kept, **own, **(extra or {})}


def openbook(*arguments: str, workspace: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [*OPENBOOK, *arguments],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        cwd=workspace.parent,
        env=environment(workspace, extra),
    )


def start(*arguments: str, workspace: Path) -> subprocess.Popen[bytes]:
    """Start the command and leave it running."""
    return subprocess.Popen(
        [*OPENBOOK, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=workspace.parent,
        env=environment(workspace),
    )
