"""Study files: defaults of the paper, overrides, and errors that name the key and its neighbour."""

from pathlib import Path

import pytest

from flows.study_run import STUDIES, find_study
from rag.config import IndexConfig, TaskConfig, parse_study, read_study
from rag.errors import ConfigError

BASE = {"name": "x", "title": "t", "sources": {}, "corpora": {}, "tasks": {}, "models": {}}


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_packaged_study_is_valid(path: Path) -> None:
    assert read_study(path).name == path.stem


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({**BASE, "sedd": 1}, "unknown key 'sedd'; did you mean 'seed'"),
        ({**BASE, "index": {"ef_serch": 1}}, "unknown key 'index.ef_serch'; did you mean 'ef_search'"),
        (
            {**BASE, "models": {"m": {"family": "rag-token", "corpus": "c", "tasks": {"q": 1}, "stepz": 1}}},
            "unknown key 'models.m.stepz'; did you mean 'steps'",
        ),
        ({**BASE, "seed": "seven"}, "seed = 'seven'"),
        ({**BASE, "corpora": {"c": ["wiki"]}}, "corpora.c names 'wiki', which the study does not define"),
        ({**BASE, "name": "../x"}, "name = '../x'"),
        ({"name": "x"}, "is missing"),
        (
            {
                **BASE,
                "tasks": {"q": {"reader": "open-qa", "test": "t"}},
                "models": {"m": {"family": "closed-book", "tasks": {"q": 1}, "init_from": "m"}},
            },
            "models.m.init_from = 'm' must name a model that stands",
        ),
        ({**BASE, "generator": {"layout": "{text}"}}, "{question}"),
        ({**BASE, "tasks": {"t": {"reader": "fever", "test": "x"}}}, "labels"),
    ],
)
def test_a_wrong_key_is_named(tree: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_study(tree)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


_SHA1 = "0" * 40


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"path": "a", "format": "jsonl", "until": "1990-01-01"}, "until is for format = 'mediawiki' only"),
        ({"path": "a", "format": "psgs", "dump_job": "articles"}, "dump_job is for format = 'mediawiki' only"),
        ({"path": "a", "format": "kilt", "previous": "old"}, "previous is for format = 'mediawiki' only"),
        ({"path": "a", "expected_rows": 7}, "expected_rows is for format = 'psgs' only, and this is 'mediawiki'"),
        ({"path": "wikimedia:enwiki/20240801", "sha1": _SHA1}, "sha1 is of a single file"),
        ({"path": "hf:a/b/c", "format": "hf-articles", "sha1": _SHA1}, "path = 'hf:a/b/c' names many"),
        ({"path": "https://h/enwiki/20240801/", "sha1": _SHA1}, "sha1 is of a single file"),
    ],
)
def test_a_key_of_a_source_that_would_do_nothing_is_refused(source: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_study({**BASE, "sources": {"old": {"path": "x"}, "wiki": source}})
    assert str(error.value).startswith("study: sources.wiki: ")
    assert message in str(error.value)
    assert "leave it out" in str(error.value)


@pytest.mark.parametrize(
    "source",
    [
        {"path": "a", "until": "1990-01-01", "dump_job": "articles", "previous": "old", "sha1": _SHA1},
        {"path": "a", "format": "psgs", "expected_rows": 7, "max_passages_per_page": 2, "sha1": _SHA1},
        {"path": "https://h/a.jsonl", "format": "jsonl", "dump_job": "multistream", "sha1": _SHA1},
        {"path": "package:a/b", "sha1": _SHA1},
    ],
)
def test_keys_of_a_source_that_do_something_are_taken(source: dict[str, object]) -> None:
    assert parse_study({**BASE, "sources": {"old": {"path": "x"}, "wiki": source}}).sources["wiki"].path


def test_overrides_reach_any_depth_and_keep_types() -> None:
    study = read_study(STUDIES / "demo.toml", ("models.rag-token.steps=3", "seed=5", "title=Another title"))
    assert (study.models["rag-token"].steps, study.seed, study.title) == (3, 5, "Another title")


@pytest.mark.parametrize("override", ["seed", "=3", "seed.deep=1", "models.rag-token.setps=1"])
def test_a_wrong_override_is_an_error(override: str) -> None:
    with pytest.raises(ConfigError):
        read_study(STUDIES / "demo.toml", (override,))


def test_files_that_are_no_study(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("name = ", encoding="utf-8")
    with pytest.raises(ConfigError, match="not valid TOML"):
        read_study(broken)
    with pytest.raises(ConfigError, match="cannot read the study"):
        read_study(tmp_path / "absent.toml")
    with pytest.raises(ConfigError, match="demo"):
        find_study("dmeo")


def test_defaults_are_the_papers() -> None:
    assert TaskConfig(reader="open-qa", test="t").num_beams == 1  # greedy question answering
    assert TaskConfig(reader="open-qa", test="t").sequence_decoding == "thorough"
    assert (IndexConfig().kind, IndexConfig().m, IndexConfig().ef_construction) == ("auto", 128, 200)


@pytest.mark.parametrize(
    "option",
    [
        {"num_beams": 4}, {"length_penalty": 2.0}, {"early_stopping": True}, {"sequence_decoding": "fast"},
        {"min_new_tokens": 2}, {"no_repeat_ngram_size": 3}, {"decoding": "sample"}, {"samples": 4},
    ],
)  # fmt: skip
def test_a_task_with_labels_takes_no_option_of_a_search(option: dict[str, object]) -> None:
    tree = {"reader": "fever", "test": "t", "labels": {"SUPPORTS": "a", "REFUTES": "b"}, "max_new_tokens": 3}
    assert TaskConfig.model_validate(tree).max_new_tokens == 3
    with pytest.raises(ValueError, match=f"answered by its most probable label; leave {next(iter(option))} out"):
        TaskConfig.model_validate({**tree, **option})
