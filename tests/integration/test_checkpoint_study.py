"""Trained models into a study and out of it: named as on a hub, and exported."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import duckdb
import pytest
import torch
from safetensors.torch import load_file

from rag.modeling.generator import Generator
from rag.training.checkpoint import load_checkpoint
from rag.training.hf_checkpoint import import_rag
from tests.support.cli import openbook
from tests.support.tiny_encoders import write_dpr
from tests.support.tiny_hf_rag import CLASSES, write_hf_rag
from tests.support.tiny_models import tiny_generator
from tests.support.tiny_study import write_tiny_study

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

_STUDY = """
name = "checkpoints"
title = "Trained elsewhere"

[sources.wiki]
path = "2018.xml"

[corpora]
wiki = ["wiki"]

[encoder]
path = "dpr-question_encoder-multiset-base"
max_question_tokens = 24
max_passage_tokens = 48
allow_mismatch = true

[generator]
path = "bart"
max_source_tokens = 48

[index]
kind = "flat"
min_known_items = 0

[tasks.qa]
reader = "open-qa"
train = "qa-train.jsonl"
test = "qa-test.jsonl"
max_new_tokens = 4

[models.rag]
family = "rag-sequence"
corpus = "wiki"
tasks = { qa = 1 }
n_docs = 3
steps = 2
batch_size = 2

[models.hub]
family = "rag-sequence"
corpus = "wiki"
tasks = { qa = 1 }
steps = 0
checkpoint = "facebook/rag-sequence-nq"
"""


class World:
    """The files of the study and a workspace, in which it has run and its first model was exported."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.workspace = folder / "study", folder / "workspace"
        write_tiny_study(self.folder)
        write_dpr(self.folder / "dpr-question_encoder-multiset-base", question=True)
        write_dpr(self.folder / "dpr-ctx_encoder-multiset-base", question=False)
        tiny_generator("bart", self.folder / "bart")
        self._put_into_the_hub_cache(folder / "hub")
        (self.folder / "study.toml").write_text(_STUDY, encoding="utf-8")
        self.ran = self.openbook("run", "study/study.toml")
        self.exported = self.openbook("export", "study/study.toml", "rag", "exported/rag")

    def _put_into_the_hub_cache(self, hub: Path) -> None:
        """As hf download leaves a model: snapshots of links to blobs, named by a commit."""
        self.hub, model = hub, hub / "hub" / "models--facebook--rag-sequence-nq"
        write_hf_rag(hub / "theirs")
        for path in [path for path in (hub / "theirs").rglob("*") if path.is_file()]:
            blob = model / "blobs" / str(abs(hash(path)))
            link = model / "snapshots" / "c0" / path.relative_to(hub / "theirs")
            blob.parent.mkdir(parents=True, exist_ok=True)
            link.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, blob)
            link.symlink_to(blob)
        (model / "refs").mkdir()
        (model / "refs" / "main").write_text("c0")

    def openbook(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return openbook(*arguments, workspace=self.workspace, HF_HOME=str(self.hub))

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.workspace / "database" / "results.duckdb"), read_only=True) as connection:
            return connection.execute(sql).fetchall()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("checkpoints"))
    assert world.ran.returncode == 0, world.ran.stderr
    assert world.exported.returncode == 0, world.exported.stderr
    return world


def test_an_export_is_loaded_by_transformers_and_comes_back_unchanged(world: World, tmp_path: Path) -> None:
    assert "load it with RagSequenceForGeneration.from_pretrained" in world.exported.stdout
    folder = world.workspace.parent / "exported" / "rag"
    _, report = CLASSES["rag-sequence"].from_pretrained(folder, output_loading_info=True)
    assert not any(report[problem] for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    (trained,) = world.workspace.glob("artifacts/model/rag-*")
    before = load_checkpoint(trained, "rag-sequence", "dense")
    card = import_rag(folder, tmp_path, "rag-sequence").card
    after = load_checkpoint(tmp_path, "rag-sequence", "dense")
    weights = after.model.state_dict()
    assert all(torch.equal(weights[name], tensor) for name, tensor in before.model.state_dict().items())
    same = {"layout", "max_source_tokens", "n_docs", "passage_fingerprint", "row_ids_sha256", "trained_steps"}
    assert card.model_dump(include=same) == before.card.model_dump(include=same)
    assert before.card.row_ids_sha256


def test_a_model_of_the_hub_is_tested_as_it_is_and_the_report_says_what_is_unknown(world: World) -> None:
    (hub,) = world.workspace.glob("artifacts/model/hub-*")
    after, before = (load_file(folder / "model.safetensors") for folder in (hub / "generator", world.hub / "theirs"))
    assert after.keys() < {name.removeprefix("rag.generator.") for name in before}
    assert all(torch.equal(tensor, before[f"rag.generator.{name}"]) for name, tensor in after.items())
    assert world.query("SELECT count(*) FROM predictions WHERE model = 'hub' AND error IS NULL") == [(2,)]
    ((message,),) = world.query("SELECT message FROM v_caveats WHERE name = 'hub'")
    assert "whether the model was trained with the passages it answers from is not recorded" in message
    assert "training dpr-single-nq against dpr-multiset" in message
    report = Path(world.ran.stdout.rsplit("Report: ", 1)[1].strip()).read_text(encoding="utf-8")
    assert "Read every number with this (hub): whether the model was trained" in report


def test_a_generator_is_loaded_through_the_links_of_the_hub_cache(world: World, tmp_path: Path) -> None:
    for path in (world.folder / "bart").iterdir():
        (tmp_path / path.name).symlink_to(path)
    assert Generator.load(tmp_path).first_token_ids == (0,)


def test_a_setting_that_the_checkpoint_decides_trains_nothing_anew(world: World) -> None:
    """Last of all, for it answers again: the hub's model keeps its own max_source_tokens."""
    again = world.openbook("run", "study/study.toml", "--set", "generator.max_source_tokens=47")
    assert again.returncode == 0, again.stderr
    lines = [line for line in again.stdout.splitlines() if line.startswith(("model ", "checkpoint "))]
    assert {"cached" in line for line in lines if "hub" in line} == {True}
    assert any("model rag" in line and "cached" not in line for line in lines)
