"""Lists of a dump's files as Wikimedia publishes them, and the parts of a dump that are in no order."""

import json
from typing import Any

FOLDER = "/xxwiki/20240801/"
BASE = "xxwiki-20240801-pages-articles"


def job_of(names: list[str], status: str = "done") -> dict[str, Any]:
    files = {
        name: {"size": 10 + at, "sha1": f"{at:040x}", "md5": "x", "url": f"{FOLDER}{name}"}
        for at, name in enumerate(names)
    }
    return {"status": status, "updated": "2024-08-03 10:00:00", "files": files}


def status_of(**jobs: Any) -> bytes:
    return json.dumps({"version": "0.8", "jobs": jobs}).encode()


def sums_of(*names: str) -> bytes:
    return "".join(f"{at:040x}  {name}\n" for at, name in enumerate(names)).encode()


PARTS = [f"{BASE}{part}.xml-p{pages}.bz2" for part, pages in [("10", "901p999"), ("2", "101p300"), ("2", "31p100")]]
PARTS += [f"{BASE}1.xml-p1p30.bz2", f"{BASE}3.xml-p301p400.bz2", f"{BASE}4.xml-p401p450.bz2"]
PARTS += [f"{BASE}{part}.xml-p{at}p{at + 89}.bz2" for part, at in zip((*"56789",), range(451, 900, 90), strict=True)]
IN_ORDER = [PARTS[3], PARTS[2], PARTS[1], *sorted(PARTS[4:]), PARTS[0]]
WHOLE = f"{BASE}.xml.bz2"
