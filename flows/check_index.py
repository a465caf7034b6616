"""Does a finished index find what anybody would: pages by their own title."""

from typing import TYPE_CHECKING

from flows.checks import check_stage
from flows.corpora import Corpus, encoder_identity, open_passages, open_retriever, search_identity
from flows.study_run import StudyRun

if TYPE_CHECKING:
    from collections.abc import Iterable

    from data_checks.results import CheckReport


def check_known_items(run: StudyRun, corpus: Corpus) -> None:
    """Up to a hundred titles as questions: an index with its rows in another order stops the study here."""
    from rag.retrieval.known_items import MIN_PAGES

    pages = sum(part.facts["summary"]["titles"] for part in corpus.passages)
    if pages < MIN_PAGES:
        run.terminal.note(f"known items {corpus.name}: not looked for, {pages} pages are too few to tell anything")
        return

    def reports() -> "Iterable[CheckReport]":
        from data_checks.index import check_known_items as check
        from rag.retrieval.known_items import known_items

        titles = open_passages(corpus).column("title").unique().to_pylist()
        found = known_items(open_retriever(run, corpus), titles, run.study.seed)
        items = [item._asdict() for item in found.items]
        return check(corpus.name, items, found.first, run.study.index.min_known_items)

    identity = {
        "min_known_items": run.study.index.min_known_items,
        "seed": run.study.seed,
        "encoder": encoder_identity(run, "question"),
        "search": search_identity(run, corpus),
    }
    code = ["data_checks.index", "rag.retrieval.known_items"]
    check_stage(run, "index-checks", corpus.name, reports, corpus.parents(), code, identity)
