"""Task files in their real formats to checked questions."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from prefect import flow

from flows.artifacts import Artifact, BuildResult
from flows.checks import check_stage
from flows.recording import record_dataset, record_questions, record_rejects
from flows.study_run import StudyRun, study_run
from flows.tasks import run_name
from rag.records import Split

if TYPE_CHECKING:
    from data_checks.results import CheckReport

SPLITS: tuple[Split, ...] = ("train", "dev", "test")


@flow(name="read-tasks", flow_run_name=run_name("read tasks: {study}"))
def read_tasks(study: str, overrides: tuple[str, ...] = ()) -> None:
    """The questions of every task of the study, recorded and checked."""
    with study_run(study, overrides) as run:
        for task in run.study.tasks:
            questions = extract_questions(run, task)
            record_dataset(run, "questions", questions)
            record_rejects(run, questions)
            record_questions(run, task, questions)
            check_questions(run, task, questions)


def extract_questions(run: StudyRun, task: str) -> Artifact:
    """The task's files to one questions.parquet; lines that cannot be read are kept as rejects."""
    config = run.study.tasks[task]
    files = {split: path for split in SPLITS if (path := getattr(config, split))}

    def build(folder: Path) -> BuildResult:
        import json

        from rag.tasks import READERS, open_qa
        from rag.tasks.table import write_questions

        read = partial(open_qa.read, patterns=True) if config.answers == "patterns" else READERS[config.reader]
        found = {split: read(run.path(path)) for split, path in files.items()}
        write_questions(folder / "questions.parquet", {split: file.questions for split, file in found.items()})
        rejects = [
            {**reject._asdict(), "source": f"{split}: {files[split]}"}
            for split, file in found.items()
            for reject in file.rejects
        ]
        lines = "".join(json.dumps(reject, ensure_ascii=False) + "\n" for reject in rejects)
        (folder / "rejects.jsonl").write_text(lines, encoding="utf-8")
        sizes = {split: len(file.questions) for split, file in found.items()}
        total = sum(sizes.values())
        counts = {"rows_in": total + len(rejects), "rows_out": total, "rows_rejected": len(rejects)}
        return BuildResult(counts, {"splits": sizes})

    identity = {
        "reader": config.reader,
        "answers": config.answers,
        "files": {split: run.file_identity(path) for split, path in files.items()},
    }
    return run.stage("questions", task, build, code=["rag.tasks", "rag.tasks.table"], config=identity)


def check_questions(run: StudyRun, task: str, questions: Artifact) -> None:
    """The suite over every split, and no question of the test set in the training set."""
    config = run.study.tasks[task]

    def reports() -> "list[CheckReport]":
        from data_checks.questions import overlap_frame, overlap_suite, questions_frame, questions_suite
        from data_checks.runner import run_suite
        from rag.tasks.table import read_questions

        found: list[CheckReport] = []
        frames = {}
        for split in questions.facts["splits"]:
            rows = read_questions(questions.file("questions.parquet"), split)
            frame = questions_frame([q.question_id for q in rows], [q.text for q in rows], [q.answers for q in rows])
            expected = config.expected_test_rows if split == "test" else None
            suite = questions_suite(expected, answers_required=config.reader != "msmarco")
            suite.name = f"questions {split}"
            found.append(run_suite(frame, suite, "question_id"))
            frames[split] = frame
        if "train" in frames:
            found.append(run_suite(overlap_frame(frames["train"], frames["test"]), overlap_suite(), "split"))
        return found

    identity = {"reader": config.reader, "expected_test_rows": config.expected_test_rows}
    parents = {"questions": questions}
    check_stage(run, "question-checks", task, reports, parents, ["data_checks.questions", "rag.tasks.table"], identity)
