"""`openbook`: one command a flow, imports inside the commands, errors as one line and an exit code."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Batch evaluation and experiments for retrieval-augmented generation, from a dump to the report.",
    epilog="Exit codes: 0 ok, 1 unexpected, 2 usage, 10 configuration, 11 data check failed, 12 index or checkpoint "
    "mismatch, 13 verification failed, 14 resources.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)

Study = Annotated[str, typer.Argument(help="A study's name, or a TOML file.")]
Overrides = Annotated[list[str] | None, typer.Option("--set", help="key=value, over what the study file says.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Prefect's log lines too.")]
Run = Annotated[str | None, typer.Argument(help="A run; the newest one without.")]


@app.command(epilog="Example: openbook demo")
def demo(verbose: Verbose = False) -> None:
    """The whole study on embedded defaults: no network, minutes on two cores."""
    _run_study("demo", (), verbose)


@app.command(epilog="Example: openbook run nightly.toml --set seed=7")
def run(study: Study, overrides: Overrides = None, verbose: Verbose = False) -> None:
    """Run a study; what is there already is not computed again."""
    _run_study(study, tuple(overrides or ()), verbose)


@app.command(epilog="Example: openbook plan enwiki --set sources.enwiki.path=wikimedia:enwiki/20261101")
def plan(study: Study, overrides: Overrides = None) -> None:
    """What a study will take in rows, memory, disk and hours, dumps to indexes; refuses what cannot fit."""
    from flows.plan_study import plan_study, require_fit
    from flows.plan_tables import print_plan

    planned = plan_study(study, tuple(overrides or ()))
    print_plan(planned)
    require_fit(planned)


@app.command(epilog="Example: openbook report --format md")
def report(
    run: Run = None,
    format: Annotated[str, typer.Option(help="html, md or latex.")] = "html",
) -> None:
    """Render the report of a run again and print its path."""
    from flows.inspect_results import render

    typer.echo(render(run, format))


@app.command(epilog="Example: openbook verify")
def verify(run: Run = None) -> None:
    """Recompute every metric of a run from its stored predictions, and every file's hash."""
    from flows.inspect_results import verify_run

    for line in verify_run(run):
        typer.echo(line)


@app.command(epilog='Example: openbook query "SELECT model, task, name, value FROM metrics"')
def query(sql: Annotated[str, typer.Argument(help="One SELECT over the tables of reports/schema.sql.")]) -> None:
    """Read the results database; nothing can be changed through it."""
    from flows.inspect_results import open_store
    from flows.result_tables import print_rows

    table = open_store().query(sql)
    print_rows(table.columns, table.rows)


@app.command(epilog='Example: openbook search "capital of Peru" --index 2018')
def search(
    question: Annotated[
        str | None, typer.Argument(help="What to look for; without it, each line of the input.")
    ] = None,
    index: Annotated[str | None, typer.Option(help="A corpus of the study; its last one without.")] = None,
    study: Annotated[str, typer.Option(help="The study whose index is searched.")] = "demo",
    retriever: Annotated[str, typer.Option(help="dense, bm25 or hybrid.")] = "dense",
    n_docs: Annotated[int, typer.Option(min=1, help="Passages to show.")] = 5,
    overrides: Overrides = None,
) -> None:
    """The passages of an index that answer best, with their scores; nothing is generated."""
    from flows.ask_model import open_search
    from flows.result_tables import print_search

    if question is not None and not question.strip():
        raise typer.BadParameter("the question is empty", param_hint="QUESTION")
    asked = [question] if question is not None else _lines("question")
    print_search(open_search(study, index, retriever, tuple(overrides or ())), asked, n_docs)


@app.command(epilog='Example: openbook ask "Who is the President of France?" --index 2016')
def ask(
    question: Annotated[str, typer.Argument(help="The question.")],
    index: Annotated[str | None, typer.Option(help="A corpus of the study; the model's own without.")] = None,
    study: Annotated[str, typer.Option(help="The study whose model answers.")] = "demo",
    model: Annotated[str | None, typer.Option(help="A RAG model of the study; its first one without.")] = None,
    n_docs: Annotated[int | None, typer.Option(min=1, help="Passages to read; the study's number without.")] = None,
    candidates: Annotated[int, typer.Option(min=1, help="Answers to look for, by as many beams.")] = 1,
    overrides: Overrides = None,
) -> None:
    """An answer from a trained model, with the passages it cites and how much it leans on each."""
    from flows.ask_model import Choice, answer
    from flows.print_answer import print_answer

    if not question.strip():
        raise typer.BadParameter("the question is empty", param_hint="QUESTION")
    print_answer(answer(study, question, Choice(model, index, n_docs, candidates), tuple(overrides or ())), candidates)


@app.command(epilog="Example: openbook export nq.toml rag-sequence exported/rag-sequence")
def export(
    study: Study,
    model: Annotated[str, typer.Argument(help="A RAG model of the study that dense retrieval was trained with.")],
    folder: Annotated[Path, typer.Argument(help="A new or an empty folder.")],
    overrides: Overrides = None,
) -> None:
    """Write a trained model in Hugging Face's RAG format, tokenizers included."""
    from flows.export_model import export_model

    exported = export_model(study, model, folder, tuple(overrides or ()))
    typer.echo(f"{exported.folder}: {exported.tensors} tensors; load it with {exported.class_name}.from_pretrained")
    for note in exported.notes:
        typer.echo(f"note: {note}")


@app.command(epilog="Example: openbook doctor")
def doctor() -> None:
    """What is installed, what is missing, and where things lie."""
    from flows.diagnose import findings

    found = list(findings())
    for finding in found:
        typer.echo(f"{'ok     ' if finding.ok else 'MISSING'} {finding.what}: {finding.detail}")
    if not all(finding.ok for finding in found):
        raise typer.Exit(10)


def _lines(prompt: str) -> Iterator[str]:
    """The lines of the input that hold anything; somebody at a terminal is asked for them."""
    while True:
        try:
            line = input(f"{prompt}> " if sys.stdin.isatty() else "")
        except EOFError:
            return
        if line.strip():
            yield line.strip()


def _run_study(study: str, overrides: tuple[str, ...], verbose: bool) -> None:
    """Check what can be checked at once, then start Prefect and run."""
    from flows.orchestrator import orchestrator
    from flows.room import require_room_to_start
    from flows.settings import load_settings, prepare_workspace
    from flows.study_run import WATCHED, find_study
    from flows.terminal import Terminal
    from rag.config import read_study

    path, settings = find_study(study), load_settings()
    checked = read_study(path, overrides)
    prepare_workspace(settings)
    require_room_to_start(checked, path.parent, settings)
    try:
        with Terminal(plain=verbose or None) as terminal:
            terminal.note("starting ...")
            with orchestrator(verbose, meanwhile=lambda: import_module("flows.run_study")) as prefect:
                WATCHED.set(not prefect.embedded)
                result = import_module("flows.run_study").run_study(study, overrides)
    except KeyboardInterrupt:  # Typer would end without a word
        typer.echo("openbook: stopped; the same command goes on from here", err=True)
        raise typer.Exit(130) from None
    from flows.result_tables import print_results

    print_results(result)


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """A foreseen error is one line and its exit code; an unforeseen one keeps its traceback, and code 1."""
    from flows.errors import exit_code, is_foreseen

    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        if not is_foreseen(error) and exit_code(error) == 1:
            raise
        message = "stopped; the same command goes on from here" if isinstance(error, KeyboardInterrupt) else str(error)
        typer.echo(f"openbook: {' '.join(message.split())}", err=True)
        sys.exit(exit_code(error))


def main() -> None:
    """The entry point of the command."""
    from flows.orchestrator import quiet_environment

    quiet_environment()  # before any command imports a library that reads it
    with _one_line_errors():
        app()
