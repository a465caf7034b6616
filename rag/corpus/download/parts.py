"""The names of a dump's XML files: which belong to a job, in which order they come, and whether any is missing.

A dump of a large wiki is cut into numbered parts, and a part into ranges of page ids, as in
``enwiki-20240801-pages-articles11.xml-p6899367p7054859.bz2``.
Source: the names of English Wikipedia's dumps, 2015 to 2025.
"""

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Literal

from rag.errors import DumpError

DumpJob = Literal["multistream", "articles"]
_NAME = re.compile(
    r"(?P<wiki>[a-z0-9_]+)-(?P<date>\d{8})-pages-articles(?P<multistream>-multistream)?(?P<part>\d*)"
    r"\.xml(?:-p(?P<first>\d+)p(?P<last>\d+))?(?P<more>[A-Za-z0-9._-]*)"
)
_COMPRESSIONS = (".bz2", ".gz", ".zst")
# From 2021 on the ranges begin at 1 and join without a gap. Before, they named the first and last page that there was,
# so that deleted pages lie between two parts (up to 40 ids in enwiki), or one part began with the last id of another.
_JOINED_SINCE = "20210101"
_OLD_GAP = 1000


class IncompleteDumpError(DumpError):
    """A file of the dump is missing."""


def select_xml(names: Iterable[str], job: DumpJob, where: str) -> list[str]:
    """The XML files of a job in page order: the joined file where there is one, or else all parts.

    Raises IncompleteDumpError where the names show that a part is missing, DumpError where they are of no dump, of
    several, or of one twice.
    """
    found = _of_job(names, job)
    if not found:
        raise DumpError(f"{where} has no file WIKI-DATE-pages-articles*.xml* of dump_job = {job!r}; try the other job")
    if len(dumps := {(match["wiki"], match["date"]) for match in found}) > 1:
        both = ", ".join(f"{wiki}-{date}" for wiki, date in sorted(dumps))
        raise DumpError(f"{where} holds files of several dumps ({both}); each needs a folder of its own")
    whole = [match[0] for match in found if not match["part"]]
    if len(whole) > 1:
        raise DumpError(f"{where} holds the same dump twice: {', '.join(sorted(whole))}; keep one")
    return whole or _parts_in_order(found, where)


def check_listed(chosen: list[str], listed: Iterable[str], job: DumpJob, where: str, listing: str) -> None:
    """Raise IncompleteDumpError where a published list names a part of the chosen dump that is not among the chosen.

    The joined file needs no parts beside it; a part may be packed in another way than the list says.
    """
    here = _of_job(chosen, job)
    if not all(match["part"] for match in here):
        return
    dump = {(match["wiki"], match["date"]) for match in here}
    parts = [match for match in _of_job(listed, job) if match["part"] and (match["wiki"], match["date"]) in dump]
    unpacked = {_unpacked(match[0]) for match in here}
    if missing := sorted(match[0] for match in parts if _unpacked(match[0]) not in unpacked):
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise IncompleteDumpError(f"{where} lacks {missing[0]}{others}, which {listing} names; fetch what is missing")


def _of_job(names: Iterable[str], job: DumpJob) -> list[re.Match[str]]:
    found = [match for name in names if (match := _NAME.fullmatch(name))]
    return [
        match
        for match in found
        if bool(match["multistream"]) == (job == "multistream")
        and (not match["more"] or match["more"].endswith(_COMPRESSIONS))
    ]


def _unpacked(name: str) -> str:
    return next((name.removesuffix(ending) for ending in _COMPRESSIONS if name.endswith(ending)), name)


def _parts_in_order(found: list[re.Match[str]], where: str) -> list[str]:
    numbers = {int(match["part"]) for match in found}
    if missing := set(range(1, max(numbers) + 1)) - numbers:
        raise IncompleteDumpError(
            f"{where} lacks part {min(missing)} of the dump (the last one is {max(numbers)}); fetch it"
        )
    places = {(int(match["part"]), int(match["first"] or 0)): match for match in found}
    if len(places) < len(found):
        raise DumpError(f"{where} holds a part of the dump twice, such as unpacked and packed; keep one of them")
    parts = [places[place] for place in sorted(places)]
    if all(part["first"] for part in parts):
        _check_ranges(parts, where)
    return [part[0] for part in parts]


def _check_ranges(parts: list[re.Match[str]], where: str) -> None:
    """Raise where pages are in no part, or in two."""
    old = parts[0]["date"] < _JOINED_SINCE
    _check_gap(0, parts[0], f"{where}, before {parts[0][0]}", old)
    for one, following in pairwise(parts):
        _check_gap(int(one["last"]), following, f"{where}, between {one[0]} and {following[0]}", old)


def _check_gap(last: int, part: re.Match[str], place: str, old: bool) -> None:
    first = int(part["first"])
    if first - last - 1 > (_OLD_GAP if old else 0):
        raise IncompleteDumpError(
            f"{place}: no part holds the page ids {last + 1} to {first - 1}; fetch what is missing"
        )
    if first <= last and not (old and first == last):
        raise DumpError(f"{place}: two parts hold the page ids from {first} on; keep the parts of one division")
