"""Which exit code an error ends the command with; the errors themselves are raised below."""

import errno

from data_checks.errors import CheckFailed
from rag.errors import CheckpointError, ConfigError, DataError, IndexMismatchError, RagError, ResourceError
from reports.errors import StoreError


class VerificationError(RagError):
    """Stored numbers or files that are not what the predictions or the manifests say."""


EXIT_CODES: tuple[tuple[tuple[type[BaseException], ...], int], ...] = (
    ((ConfigError,), 10),
    ((CheckFailed, DataError), 11),
    ((IndexMismatchError, CheckpointError), 12),
    ((VerificationError,), 13),
    ((ResourceError, MemoryError), 14),
    ((KeyboardInterrupt,), 130),
)
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)


def exit_code(error: BaseException) -> int:
    """The exit code for an error, 1 for one that nobody foresaw.

    >>> exit_code(ConfigError("unknown key")), exit_code(ZeroDivisionError())
    (10, 1)
    """
    for kinds, code in EXIT_CODES:
        if isinstance(error, kinds):
            return code
    return 14 if isinstance(error, OSError) and error.errno in _DISK_ERRORS else 1


def is_foreseen(error: BaseException) -> bool:
    """Whether the message alone tells a person what to do, so that no traceback is needed."""
    return isinstance(error, RagError | CheckFailed | StoreError | KeyboardInterrupt)
