"""Why a result cannot be used again, in the words of whoever changed something."""

import json
from collections.abc import Mapping
from typing import Protocol

from pydantic import JsonValue

from flows.manifest import ParentRecord, canonical_json

_SHOWN = 5  # more reasons than this are counted, not listed


class Identified(Protocol):
    """The four parts of an identity, as a manifest has them."""

    @property
    def code(self) -> Mapping[str, str]: ...
    @property
    def config(self) -> Mapping[str, JsonValue]: ...
    @property
    def parents(self) -> Mapping[str, ParentRecord]: ...
    @property
    def versions(self) -> Mapping[str, str]: ...


def explain_change(before: Identified, now: Identified) -> str:
    """What differs between the last artifact of a name and the one that is wanted.

    For example "configuration words changed: 100 -> 50; torch 2.12 -> 2.13".
    """
    reasons = [
        *_parent_changes(before.parents, now.parents),
        *_code_changes(before.code, now.code),
        *_config_changes(before.config, now.config),
        *_version_changes(before.versions, now.versions),
    ]
    shown = reasons[:_SHOWN]
    more = [f"and {len(reasons) - _SHOWN} more changes"] if len(reasons) > _SHOWN else []
    return "; ".join([*shown, *more]) or "nothing differs from the last one, which is gone"


def _parent_changes(before: Mapping[str, ParentRecord], now: Mapping[str, ParentRecord]) -> list[str]:
    reasons = []
    for role in sorted(before.keys() | now.keys()):
        old, new = before.get(role), now.get(role)
        if old is None and new is not None:
            reasons.append(f"input {role} is new ({new.name})")
        elif new is None and old is not None:
            reasons.append(f"input {role} is no longer used ({old.name})")
        elif old is not None and new is not None and old.fingerprint != new.fingerprint:
            names = new.name if old.name == new.name else f"{old.name} -> {new.name}"
            reasons.append(f"input {role} changed ({names})")
    return reasons


def _code_changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    changed = sorted(name for name in before.keys() & now.keys() if before[name] != now[name])
    groups = [
        ("code of {} changed", changed),
        ("code of {} is newly used", sorted(now.keys() - before.keys())),
        ("code of {} is no longer used", sorted(before.keys() - now.keys())),
    ]
    return [text.format(_listed(names)) for text, names in groups if names]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _config_changes(before: Mapping[str, JsonValue], now: Mapping[str, JsonValue]) -> list[str]:
    old, new = _leaves(before), _leaves(now)
    reasons = []
    for key in sorted(old.keys() | new.keys()):
        if key not in old:
            reasons.append(f"configuration {key} is new: {_shown(new[key])}")
        elif key not in new:
            reasons.append(f"configuration {key} is gone: was {_shown(old[key])}")
        elif canonical_json(old[key]) != canonical_json(new[key]):
            reasons.append(f"configuration {key} changed: {_shown(old[key])} -> {_shown(new[key])}")
    return reasons


def _leaves(tree: Mapping[str, JsonValue], prefix: str = "") -> dict[str, JsonValue]:
    leaves: dict[str, JsonValue] = {}
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            leaves.update(_leaves(value, f"{prefix}{key}."))
        else:
            leaves[f"{prefix}{key}"] = value
    return leaves


def _shown(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _version_changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    names = sorted(before.keys() | now.keys())
    return [
        f"{name} {before.get(name, '(not used)')} -> {now.get(name, '(not used)')}"
        for name in names
        if before.get(name) != now.get(name)
    ]
