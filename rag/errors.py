"""Every error that the science raises on purpose, with the fix in its message.

RagError
├── ConfigError           a study, model name or option that cannot be right
├── DataError             bytes or rows that are not what their format promises
│   └── DumpError         a MediaWiki dump that is cut, corrupt or of an unknown kind
├── IndexMismatchError    an index that does not belong to these passages or this encoder
├── CheckpointError       a checkpoint that is damaged, of the other family, or of another index
├── TrainingError         a training that diverged, collapsed or trained nothing
└── ResourceError         too little memory or disk, a place that cannot be written, a server out of reach
"""


class RagError(Exception):
    """Base of all errors that a user can act on; the message says what, which value, and what to do."""


class ConfigError(RagError):
    """A study file, option or model name cannot be right."""


class DataError(RagError):
    """Input rows or bytes break the promise of their format."""

    row: int | None = None  # of those that were given, where one is to blame and whoever gave them knows its name


class DumpError(DataError):
    """A MediaWiki dump is cut, corrupt or of a kind that cannot be read."""


class IndexMismatchError(RagError):
    """A passage index does not belong to the passages, encoder or metric it is used with."""


class CheckpointError(RagError):
    """A checkpoint is damaged, of another model family, or was trained with another index."""


class TrainingError(RagError):
    """A training diverged, or would end without having trained anything."""


class ResourceError(RagError):
    """The machine lacks what the work needs: memory, disk space, a writable folder, or a server that answers."""
