"""An artifact, what it is made of, and where it lies."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from flows.manifest import MANIFEST, Manifest, ParentRecord, canonical_json, json_sha256
from rag.errors import ConfigError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True)
class Artifact:
    """A finished result: its folder and its manifest."""

    folder: Path
    manifest: Manifest

    @property
    def stage(self) -> str:
        """The stage that made it."""
        return self.manifest.stage

    @property
    def name(self) -> str:
        """What it is of, in the study's words."""
        return self.manifest.name

    @property
    def fingerprint(self) -> str:
        """The sha256 of its identity."""
        return self.manifest.fingerprint

    @property
    def counts(self) -> Mapping[str, int]:
        """Rows in, out and rejected, as the build counted them."""
        return self.manifest.counts

    @property
    def facts(self) -> Mapping[str, Any]:
        """What else the build measured."""
        return self.manifest.facts

    @property
    def created_at(self) -> datetime:
        """When it was finished: the time of its manifest, whose content says nothing of time."""
        return datetime.fromtimestamp((self.folder / MANIFEST).stat().st_mtime, UTC)

    def file(self, name: str) -> Path:
        """The path of one of its files. Raises KeyError for a file that the manifest does not name."""
        if name not in {record.path for record in self.manifest.files}:
            raise KeyError(f"{self.folder.name} has no file {name!r}")
        return self.folder / name


@dataclass(frozen=True)
class Identity:
    """All that can change a result: code, configuration, inputs, versions of what computes it.

    ``config`` is anything JSON can hold. What cannot change the result (device, threads, batch size at inference,
    paths) is left out by the caller. ``parents`` maps a role to the artifact in it.
    """

    code: Mapping[str, str]
    config: Mapping[str, Any]
    parents: Mapping[str, "Artifact | ParentRecord"] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


class BuildResult(NamedTuple):
    """What a build hands back beside the files it wrote."""

    counts: Mapping[str, int]
    facts: Mapping[str, Any] = {}


class Outcome(NamedTuple):
    """An artifact, and whether and why it had to be made."""

    artifact: Artifact
    cache_hit: bool
    reason: str
    seconds: float  # of this call, waiting included


class Plan(NamedTuple):
    """What ``get_or_build`` would do; ``record`` serves as a parent in further plans."""

    record: ParentRecord
    cache_hit: bool
    reason: str


class Slot(NamedTuple):
    """The place of one identity in the store, with the identity in JSON's own types."""

    folder: Path
    stage: str
    name: str
    fingerprint: str
    code: dict[str, str]
    config: dict[str, Any]
    parents: dict[str, ParentRecord]
    versions: dict[str, str]

    @classmethod
    def of(cls, root: Path, stage: str, name: str, identity: Identity) -> "Slot":
        """The place. Raises ConfigError for a stage or name that cannot be a file name, ValueError for NaN."""
        for word in (stage, name):
            if not _NAME.fullmatch(word):
                raise ConfigError(f"{word!r} cannot name an artifact: letters, digits, '_', '.' and '-', at most 100")
        code, versions = dict(identity.code), dict(identity.versions)
        config: dict[str, Any] = json.loads(canonical_json(dict(identity.config)))
        parents = {
            role: ParentRecord(stage=parent.stage, name=parent.name, fingerprint=parent.fingerprint)
            for role, parent in identity.parents.items()
        }
        inputs = {role: parent.fingerprint for role, parent in parents.items()}
        fingerprint = json_sha256(
            {"stage": stage, "code": code, "config": config, "parents": inputs, "versions": versions}
        )
        folder = root / stage / f"{name}-{fingerprint[:16]}"
        return cls(folder, stage, name, fingerprint, code, config, parents, versions)

    @property
    def partial(self) -> Path:
        """Where a build works until it is finished."""
        return self.folder.with_name(f"{self.folder.name}.partial")

    @property
    def record(self) -> ParentRecord:
        """What names the artifact in the manifests of those made from it."""
        return ParentRecord(stage=self.stage, name=self.name, fingerprint=self.fingerprint)

    def is_sibling(self, key: str) -> bool:
        """Whether a folder's name is this artifact's name with some fingerprint."""
        return re.fullmatch(re.escape(self.name) + r"-[0-9a-f]{16}", key) is not None
