"""A trained model of a study as a folder that transformers loads."""

from pathlib import Path
from typing import TYPE_CHECKING

from flows.study_run import open_run
from rag.errors import ConfigError

if TYPE_CHECKING:
    from rag.training.hf_export import Exported


def export_model(study: str, model: str, folder: Path, overrides: tuple[str, ...] = ()) -> "Exported":
    """Write a model in Hugging Face's RAG format to a new folder.

    Raises ConfigError where the study has no such model or has not trained it, CheckpointError where that format
    cannot hold it or the folder holds something.
    """
    from rag.training.hf_export import export_rag

    run = open_run(study, overrides)
    if model not in run.study.models:
        raise ConfigError(f"{study} has no model {model!r}; it has {', '.join(run.study.models) or '(none)'}")
    return export_rag(run.result("model", model).folder, folder)
