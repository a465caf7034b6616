"""A source to a folder of passages, with every page accounted for.

The folder gets ``passages-NNNNN.parquet`` (the passages), ``pages-NNNNN.parquet`` (the ledger: what became of each
page), ``rejects.jsonl`` and ``duplicates.parquet``. A source is worked on in batches of constant size, and what goes
where depends on their order alone: any number of workers, any interruption, and with or without an earlier ingest to
copy from, the bytes are the same.
"""

import json
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rag.config import PassageConfig
from rag.corpus.dump import SiteInfo, check_page_count, read_site
from rag.corpus.duplicates.drop import drop_duplicates
from rag.corpus.duplicates.find import find_duplicates
from rag.corpus.ingest.batches import SourceSpec, batches_left, dump_batches, item_batches
from rag.corpus.ingest.ledger import LEDGER_SCHEMA, LEDGERS, SETTINGS, ledger_settings
from rag.corpus.ingest.pages import Recipe
from rag.corpus.ingest.repeats import SeenPages
from rag.corpus.ingest.report import IngestReport, make_report
from rag.corpus.ingest.state import (
    DUPLICATES_FILE,
    REJECTS_FILE,
    IngestState,
    inputs_identity,
    load_state,
    save_state,
)
from rag.corpus.ingest.workers import Done, Workers
from rag.corpus.ingest.writer import IngestWriter
from rag.corpus.passages import passage_files
from rag.corpus.wikitext import RenderOptions
from rag.corpus.wikitext.namespaces import render_options
from rag.errors import ConfigError, DataError, ResourceError

__all__ = ["DUPLICATES_FILE", "REJECTS_FILE", "IngestReport", "SourceSpec", "ingest"]

# Options of what is done with whole shards.
_AFTERWARDS = {"exact_duplicates", "near_duplicates", "boilerplate", "near_duplicate_jaccard", "boilerplate_pages"}

Progress = Callable[[Iterable[Any]], Iterable[Any]]


def ingest(
    spec: SourceSpec,
    options: PassageConfig,
    out: Path,
    workers: int = 1,
    previous: Path | None = None,
    progress: Progress = iter,
) -> IngestReport:
    """Cut the articles of a source into passages, in the folder ``out``.

    Only pages of namespace 0 are articles; redirects, disambiguation pages and lists are counted and, by option, left
    out. Every article without a passage is a reject with its reason, and so is every page of a dump whose id an earlier
    page has. A call that was stopped goes on after its last whole shard when it is repeated with the same inputs; one
    that was not returns the same report. ``previous`` is the folder of an earlier dump of the same wiki, ingested by
    the same code: pages of the same revision and text are copied from it if its options were the same. What is damaged
    there, or missing, is made again.

    Raises DumpError or DataError where the source cannot be read to its end, ConfigError for fewer than one worker,
    and ResourceError where ``out`` cannot be written or a worker process was ended.
    """
    if workers < 1:
        raise ConfigError(f"{workers} workers cannot ingest {spec.name}; give 1 or more")
    try:
        site = _site(spec)
        recipe = _recipe(spec, options, site)
        out.mkdir(parents=True, exist_ok=True)
        state = load_state(out, inputs_identity(spec, options))
        with Workers(recipe, _same_settings(recipe, previous), workers) as processes:
            help = _Help(processes, progress)
            if not state.pages_done:
                state = _write_pages(spec, recipe, state, out, help)
            state = _settle_duplicates(options, state, out, help)
        return make_report(out, state, site, _dropped_kinds(options))
    except OSError as error:
        raise ResourceError(f"cannot write passages into {out}: {error}; check folder and disk space") from error


class _Help(NamedTuple):
    """What makes an ingest faster, and shows how far it is; never what it writes."""

    workers: Workers
    progress: Progress


def _site(spec: SourceSpec) -> SiteInfo | None:
    """The wiki that a dump is from."""
    if spec.format != "mediawiki":
        return None
    sites = [read_site(path) for path in spec.paths]
    for path, site in zip(spec.paths, sites, strict=True):
        if site.dbname != sites[0].dbname:
            raise DataError(
                f"{path} is of the wiki {site.dbname!r} and {spec.paths[0]} of {sites[0].dbname!r}; "
                "the parts of a source must be of one dump"
            )
    return sites[0]


def _recipe(spec: SourceSpec, options: PassageConfig, site: SiteInfo | None) -> Recipe:
    rendering = render_options(options, site.namespaces, site.dbname) if site else RenderOptions()
    wiki = (site.base, site.dbname) if site else ("", "")
    return Recipe(spec.name, spec.format, options, spec.max_passages_per_page, spec.until, rendering, *wiki)


def _settings(recipe: Recipe) -> bytes:
    """What decides the passages of a given revision, besides the code."""
    rendering = {name: sorted(value) if isinstance(value, frozenset) else value
                 for name, value in recipe.rendering._asdict().items()}  # fmt: skip
    options = recipe.options.model_dump(exclude=_AFTERWARDS)
    wiki = [recipe.wiki, recipe.site_base]
    content = {"wiki": wiki, "options": options, "cap": recipe.cap, "rendering": rendering}
    return json.dumps(content, ensure_ascii=False, sort_keys=True).encode()


def _same_settings(recipe: Recipe, previous: Path | None) -> Path | None:
    """The earlier ingest, if what it made of a page is what would be made of it now."""
    if previous is None or recipe.format != "mediawiki":
        return None
    try:
        return previous if ledger_settings(previous) == _settings(recipe) else None
    except DataError:
        return None  # it only makes things faster


def _write_pages(spec: SourceSpec, recipe: Recipe, state: IngestState, out: Path, help: _Help) -> IngestState:
    """All shards and the rejects, from where ``state`` says on."""
    is_dump = spec.format == "mediawiki"
    writer = IngestWriter(out, state, LEDGER_SCHEMA.with_metadata({SETTINGS: _settings(recipe)}))
    with closing(_done(spec, recipe, state, help)) as done:
        try:
            seen = SeenPages.of_ledgers(out.glob(LEDGERS))
            for batch, made in done:
                _check_parts(spec, writer.state, batch.part)
                writer.add(batch, seen.first_only(made, spec.name) if is_dump else made)
            _check_parts(spec, writer.state, len(spec.paths))
            return writer.finish()
        except BaseException:
            writer.abandon()
            raise


def _done(spec: SourceSpec, recipe: Recipe, state: IngestState, help: _Help) -> Generator[Done]:
    is_dump = recipe.format == "mediawiki"
    if is_dump:
        batches = dump_batches(spec, state.part, state.batch)
        total = batches_left(spec, state.part, state.batch)
    else:
        batches = item_batches(spec, state.part, state.batch, help.progress)
        total = None
    with closing(help.workers.batches(batches)) as done:
        shown: Iterable[Done] = done if total is None else _Counted(done, total)
        yield from help.progress(shown) if is_dump else shown


class _Counted:
    """An iterable whose length is known."""

    def __init__(self, items: Iterable[Done], total: int) -> None:
        self._items = items
        self._total = total

    def __iter__(self) -> Iterator[Done]:
        return iter(self._items)

    def __len__(self) -> int:
        return self._total


def _check_parts(spec: SourceSpec, state: IngestState, part: int) -> None:
    """Compare the pages of the parts before ``part`` that were just read to their end with their indexes."""
    if spec.format == "mediawiki":
        for finished in range(state.part, part):
            check_page_count(spec.paths[finished], state.pages_of_part if finished == state.part else 0)


def _settle_duplicates(options: PassageConfig, state: IngestState, out: Path, help: _Help) -> IngestState:
    """List and count the duplicates of whole shards, once; then drop what the options say."""
    shards, listed = passage_files(out), out / DUPLICATES_FILE
    if state.duplicates is None:
        alike = (options.near_duplicate_jaccard, options.boilerplate_pages)
        found = find_duplicates(shards, listed, *alike, help.progress, help.workers.each)
        counts = {name: getattr(found, name) for name in ("exact", "near", "boilerplate", "copies")}
        state = replace(state, duplicates=counts)
        save_state(out, state)
    drop_duplicates(shards, listed, frozenset(_dropped_kinds(options)))
    return state


def _dropped_kinds(options: PassageConfig) -> tuple[str, ...]:
    chosen = {"exact": options.exact_duplicates, "near": options.near_duplicates, "boilerplate": options.boilerplate}
    return tuple(kind for kind, choice in chosen.items() if choice == "drop")
