"""Every error that is raised on purpose has the exit code that scripts rely on."""

import errno

import pytest

from data_checks.errors import CheckFailed
from flows.errors import VerificationError, exit_code, is_foreseen
from rag import errors as rag_errors
from reports.errors import StoreError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (rag_errors.ConfigError("x"), 10),
        (CheckFailed("x"), 11),
        (rag_errors.DataError("x"), 11),
        (rag_errors.DumpError("x"), 11),
        (rag_errors.IndexMismatchError("x"), 12),
        (rag_errors.CheckpointError("x"), 12),
        (VerificationError("x"), 13),
        (rag_errors.ResourceError("x"), 14),
        (MemoryError(), 14),
        (OSError(errno.ENOSPC, "full"), 14),
        (KeyboardInterrupt(), 130),
        (StoreError("x"), 1),
        (OSError(errno.ENOENT, "gone"), 1),
        (ValueError("x"), 1),
    ],
)
def test_exit_codes(error: BaseException, code: int) -> None:
    assert exit_code(error) == code


def test_only_errors_raised_on_purpose_need_no_traceback() -> None:
    assert all(is_foreseen(error) for error in (rag_errors.DumpError("cut"), StoreError("x"), CheckFailed("x")))
    assert not is_foreseen(ValueError("x"))
