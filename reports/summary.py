"""The head of the report: what ran, and what a reader must know before quoting anything."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from reports.cells import DASH, Cell, Column, ReportTable, duration

_PAPERS_PARTS = "facebook/"  # the paper's encoders and generator are published under this name


class Fact(NamedTuple):
    """One line of the summary."""

    label: str
    text: str


class Summary(NamedTuple):
    """Everything above the first table."""

    run_id: str
    title: str
    description: str
    status: str
    error: str
    facts: tuple[Fact, ...]
    caveats: tuple[str, ...]  # what every number must be read with
    warnings: tuple[str, ...]
    comparison_note: str
    models: ReportTable
    config: str
    versions: tuple[Fact, ...]


def summarise(run: Mapping[str, Any], tables: Mapping[str, ReportTable], caveats: Sequence[str] = ()) -> Summary:
    """The summary of a row of ``runs``, the tables of that run, and what was done against a warning."""
    config = _mapping(run["config_json"])
    versions = {**_mapping(run["versions_json"]), **_mapping(run["machine_json"])}
    return Summary(
        run_id=run["run_id"],
        title=run["title"] or run["study"],
        description=run["description"],
        status=run["status"],
        error=run["error"] or "",
        facts=tuple(_facts(run, config)),
        caveats=tuple(caveats),
        warnings=tuple(_warnings(tables, run["status"] == "complete")),
        comparison_note=_comparison_note(config, tables),
        models=_model_table(config),
        config=json.dumps(config, indent=2, ensure_ascii=False),
        versions=tuple(Fact(key.replace("_", " "), _words(value)) for key, value in versions.items()),
    )


def _facts(run: Mapping[str, Any], config: Mapping[str, Any]) -> list[Fact]:
    began, ended = run["started_at"], run["finished_at"]
    took = f", took {duration((ended - began).total_seconds())}" if ended else ", not finished"
    facts = [
        Fact("run", f"{run['run_id']}, study {run['study']}, seed {run['seed'] if run['seed'] is not None else DASH}"),
        Fact("began", f"{began:%Y-%m-%d %H:%M:%S} UTC{took}"),
        Fact("configuration", run["config_hash"] or DASH),
    ]
    path = _mapping(config.get("generator")).get("path")
    facts += [*([Fact("generator", str(path))] if path else []), *_encoder_facts(config)]
    corpora = _mapping(config.get("corpora"))
    indexes = "; ".join(f"{name}: {_words(sources)}" for name, sources in corpora.items())
    return [*facts, Fact("passage indexes", indexes)] if indexes else facts


def _encoder_facts(config: Mapping[str, Any]) -> list[Fact]:
    encoder = _mapping(config.get("encoder"))
    paths = _encoder_paths(encoder)
    one = len(set(paths)) == 1
    labels = ("question and passage encoder",) if one else ("question encoder", "passage encoder")
    facts = [Fact(label, path) for label, path in zip(labels, paths, strict=False)]
    prefixes = ((side, encoder.get(f"{side}_prefix")) for side in ("question", "passage"))
    return [*facts, *(Fact(f"{side} prefix", f'"{prefix}"') for side, prefix in prefixes if prefix)]


def _encoder_paths(encoder: Mapping[str, Any]) -> tuple[str, ...]:
    """The weights that read questions, and those that read passages; empty where the study names none.

    >>> _encoder_paths({"path": "facebook/dpr-question_encoder-single-nq-base"})[1]
    'facebook/dpr-ctx_encoder-single-nq-base'
    """
    path = str(encoder.get("path") or "")
    passages = encoder.get("context_path") or path.replace("dpr-question_encoder-", "dpr-ctx_encoder-")
    return (path, str(passages)) if path else ()


def _model_table(config: Mapping[str, Any]) -> ReportTable:
    shown = (
        ("family", "family"),
        ("corpus", "passage index"),
        ("retriever", "retriever"),
        ("n_docs", "passages"),
        ("tasks", "trained on"),
        ("steps", "steps"),
        ("batch_size", "batch"),
        ("learning_rate", "learning rate"),
    )
    models = {name: _mapping(model) for name, model in _mapping(config.get("models")).items()}
    used = [(key, label) for key, label in shown if any(_own(model, key) is not None for model in models.values())]
    numeric = {"n_docs", "steps", "batch_size", "learning_rate"}
    columns = (Column("model"), *(Column(label, numeric=key in numeric) for key, label in used))
    rows = tuple((Cell(name), *(Cell(_words(_own(model, key))) for key, _ in used)) for name, model in models.items())
    return ReportTable("models", "Models", "As the study configures them.", columns, rows)


def _own(model: Mapping[str, Any], key: str) -> Any:
    """A closed-book model reads no passages, whatever the default says."""
    return None if key in ("n_docs", "retriever") and model.get("corpus") is None else model.get(key)


def _comparison_note(config: Mapping[str, Any], tables: Mapping[str, ReportTable]) -> str:
    if "expected" in tables:
        return "Expected values stand in the study file with their source; nothing else here is compared with others."
    encoders = _encoder_paths(_mapping(config.get("encoder")))
    paths = [str(_mapping(config.get("generator")).get("path", "")), *(encoders or ("",))]
    if all(path.startswith(_PAPERS_PARTS) for path in paths):
        return "The study states no expected values, so nothing on this page compares with published numbers."
    return "These are not the paper's models: nothing on this page compares with the paper's numbers."


def _warnings(tables: Mapping[str, ReportTable], complete: bool) -> list[str]:
    """What did not go as it should, from the marks that the cells carry."""
    found = []
    definitions = tables.get("definitions")
    if definitions and complete:  # of a run that is not, every number is partial, and the banner says so
        partial = sum(any(cell.partial for cell in row) for row in definitions.rows)
        reasons = "; ".join(definitions.notes[:4])
        found += [f"{partial} of {len(definitions.rows)} numbers are partial: {reasons}."] if partial else []
    for key, words, named_by in _ALARMS:
        rows = tables[key].rows if key in tables else ()
        alarms = [row for row in rows if any(cell.alarm for cell in row)]
        names = "; ".join(", ".join(cell.text for cell in row[:named_by]) for row in alarms) if named_by else ""
        found += [f"{len(alarms)} of {len(rows)} {words}{': ' if names else ''}{names}."] if alarms else []
    return found


_ALARMS = (  # a table, what its alarms mean, and how many of its first columns say which rows these are
    ("checks", "data check suites failed", 0),
    ("index_recall", "passage indexes are below their recall gate", 2),
    ("expected", "expected values were not met", 0),
    ("stages", "stages did not complete", 0),
)


def _mapping(value: Any) -> dict[str, Any]:
    """JSON from the database, or a value from within it, as a mapping; empty where it is none."""
    found = json.loads(value) if isinstance(value, str) and value[:1] == "{" else value
    return found if isinstance(found, dict) else {}


def _words(value: Any) -> str:
    if value is None:
        return DASH
    if isinstance(value, dict):
        return ", ".join(f"{name} {item:g}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(str(item) for item in value)
    return str(value)
