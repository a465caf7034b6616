"""The real English sample dump of May 2016, if this machine has it."""

import importlib.util
from pathlib import Path

from tests.support.shared_data import shared_data

_IN_GENSIM = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"


def sample_dump() -> Path:
    """The dump inside the gensim package, or its copy in the shared data; skips the calling test where both lack."""
    spec = importlib.util.find_spec("gensim")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder, "test", "test_data", _IN_GENSIM)
        if path.exists():
            return path
    return shared_data("wikidump", "enwiki-20160501-pages-articles1.xml-p10p30302-shortened.bz2")
