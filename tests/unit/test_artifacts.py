"""The artifact store: what is found again, what is built again, and why."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from flows.artifacts import Artifact, ArtifactStore, BuildResult, Identity, Outcome
from flows.manifest import MANIFEST
from rag.errors import ConfigError, ResourceError


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "artifacts")


def write_words(folder: Path) -> BuildResult:
    (folder / "part").mkdir(exist_ok=True)
    (folder / "words.txt").write_text("one two three")
    (folder / "part" / "0.bin").write_bytes(bytes(100))
    return BuildResult({"rows_in": 4, "rows_out": 3, "rows_rejected": 1}, {"recall": 0.5})


def never(folder: Path) -> BuildResult:
    raise AssertionError(f"built again in {folder}")


def identity(
    config: Mapping[str, Any] | None = None,
    *,
    code: str = "c1",
    parents: Mapping[str, Artifact] | None = None,
    torch: str = "2.12",
) -> Identity:
    config = {"words": 100} if config is None else config
    return Identity({"rag.corpus.wikitext": code}, config, parents or {}, {"torch": torch})


def make(store: ArtifactStore, what: Identity | None = None, stage: str = "ingest", name: str = "demo") -> Outcome:
    return store.get_or_build(stage, name, identity=what or identity(), build=write_words)


def test_a_built_artifact_is_found_again_with_its_files_and_counts(store: ArtifactStore) -> None:
    built = make(store)
    found = store.get_or_build("ingest", "demo", identity=identity(), build=never)
    assert (built.cache_hit, built.reason) == (False, "first build")
    assert (found.cache_hit, found.reason) == (True, "cached")
    assert found.artifact == built.artifact
    assert found.artifact.file("part/0.bin").stat().st_size == 100
    assert dict(found.artifact.counts) == {"rows_in": 4, "rows_out": 3, "rows_rejected": 1}
    assert found.artifact.facts == {"recall": 0.5}
    assert built.artifact.folder.name == f"demo-{built.artifact.fingerprint[:16]}"
    assert [record.path for record in built.artifact.manifest.files] == ["part/0.bin", "words.txt"]
    assert store.verify(found.artifact) == []


def test_the_fingerprint_is_of_the_identity_alone(store: ArtifactStore, tmp_path: Path) -> None:
    first = make(store).artifact
    elsewhere = make(ArtifactStore(tmp_path / "other")).artifact
    renamed = make(store, name="other").artifact
    other_stage = make(store, stage="index").artifact
    assert first.fingerprint == elsewhere.fingerprint == renamed.fingerprint != other_stage.fingerprint
    text = (
        '{"code":{"rag.corpus.wikitext":"c1"},"config":{"words":100},"parents":{},'
        '"stage":"ingest","versions":{"torch":"2.12"}}'
    )
    assert first.fingerprint == hashlib.sha256(text.encode()).hexdigest()


def test_the_order_of_keys_changes_nothing_and_tuples_are_lists(store: ArtifactStore) -> None:
    make(store, identity({"a": 1, "b": (1, 2)}))
    assert make(store, identity({"b": [1, 2], "a": 1})).cache_hit


@pytest.mark.parametrize(
    ("before", "now", "reason"),
    [
        (identity(), identity(code="c2"), "code of rag.corpus.wikitext changed"),
        (identity(), identity({"words": 50}), "configuration words changed: 100 -> 50"),
        (identity({"a": {"b": 1}}), identity({"a": {"c": 1}}),
         "configuration a.b is gone: was 1; configuration a.c is new: 1"),
        (identity(), identity(torch="2.13"), "torch 2.12 -> 2.13"),
        (identity(), identity({"words": 50}, code="c2", torch="2.13"),
         "code of rag.corpus.wikitext changed; configuration words changed: 100 -> 50; torch 2.12 -> 2.13"),
    ],
)  # fmt: skip
def test_a_miss_says_what_changed(store: ArtifactStore, before: Identity, now: Identity, reason: str) -> None:
    make(store, before)
    plan = store.plan("ingest", "demo", identity=now)
    outcome = make(store, now)
    assert not outcome.cache_hit
    assert outcome.reason == plan.reason == reason
    assert make(store, before).reason == "cached", "the old one is still there"


def test_a_changed_parent_is_named(store: ArtifactStore) -> None:
    old, new = make(store).artifact, make(store, identity({"words": 50})).artifact
    make(store, identity(parents={"passages": old}), "index")
    changed = make(store, identity(parents={"passages": new}), "index")
    assert changed.reason == "input passages changed (demo)"
    assert changed.artifact.manifest.parents["passages"].fingerprint == new.fingerprint


def test_a_miss_is_explained_by_the_newest_artifact_of_the_name(store: ArtifactStore) -> None:
    for words in (100, 50):
        make(store, identity({"words": words}))
    assert make(store, identity({"words": 20})).reason == "configuration words changed: 50 -> 20"
    assert make(store, identity({"words": 20}), name="other").reason == "first build"


def test_a_plan_follows_parents_that_do_not_exist_yet(store: ArtifactStore) -> None:
    passages = store.plan("ingest", "demo", identity=identity())
    index = store.plan("index", "demo", identity=Identity({}, {}, {"passages": passages.record}))
    assert (passages.cache_hit, index.cache_hit) == (False, False)
    built = make(store).artifact
    real = store.get_or_build("index", "demo", identity=Identity({}, {}, {"passages": built}), build=write_words)
    assert real.artifact.fingerprint == index.record.fingerprint
    assert store.plan("index", "demo", identity=Identity({}, {}, {"passages": built})).cache_hit


def cut(folder: Path) -> None:
    (folder / "words.txt").write_text("one")


def remove_a_file(folder: Path) -> None:
    (folder / "part" / "0.bin").unlink()


def remove_the_manifest(folder: Path) -> None:
    (folder / MANIFEST).unlink()


def edit_the_manifest(folder: Path) -> None:
    text = (folder / MANIFEST).read_text()
    (folder / MANIFEST).write_text(text.replace('"rows_out": 3', '"rows_out": 4'))


def write_half_a_manifest(folder: Path) -> None:
    text = (folder / MANIFEST).read_text()
    (folder / MANIFEST).write_text(text[: len(text) // 2])


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut, "words.txt has 3 bytes and should have 13"),
        (remove_a_file, "part/0.bin cannot be read (No such file or directory)"),
        (remove_the_manifest, "manifest.json cannot be read"),
        (edit_the_manifest, "manifest.json does not match its own hash"),
        (write_half_a_manifest, "manifest.json is not a manifest"),
    ],
)
def test_a_damaged_artifact_is_moved_aside_and_built_again(store: ArtifactStore, damage: Any, said: str) -> None:
    folder = make(store).artifact.folder
    for number in (1, 2):
        damage(folder)
        outcome = make(store)
        aside = folder.with_name(f"{folder.name}.damaged-{number}")
        assert not outcome.cache_hit
        assert outcome.reason.startswith(f"damaged: {said}")
        assert outcome.reason.endswith(f"(moved to {aside.name})")
        assert aside.is_dir()
    assert make(store).cache_hit
    assert [artifact.folder for artifact in store.artifacts()] == [folder]


def test_a_folder_that_only_exists_is_not_done(store: ArtifactStore) -> None:
    plan = store.plan("ingest", "demo", identity=identity())
    folder = store.root / "ingest" / f"demo-{plan.record.fingerprint[:16]}"
    folder.mkdir(parents=True)
    (folder / "words.txt").write_text("one two three")
    assert make(store).reason.startswith("damaged: manifest.json cannot be read")


def test_the_manifest_of_another_artifact_does_not_count(store: ArtifactStore) -> None:
    first, second = make(store).artifact, make(store, identity({"words": 50})).artifact
    shutil.copy(second.folder / MANIFEST, first.folder / MANIFEST)
    assert make(store).reason.startswith("damaged: manifest.json is of another artifact")


def test_verify_reads_the_bytes(store: ArtifactStore) -> None:
    artifact = make(store).artifact
    artifact.file("words.txt").write_text("one two threE")
    assert make(store).cache_hit, "sizes agree, and a hit reads no more than those"
    assert store.verify(artifact) == ["words.txt has changed: its sha256 differs from the manifest's"]
    store.set_aside(artifact)
    assert not make(store).cache_hit


def half(folder: Path) -> BuildResult:
    (folder / "half.txt").write_text("half")
    (folder / ".words.txt.a1b2.tmp").write_text("on")
    raise RuntimeError("out of luck")


def test_a_failed_build_leaves_its_work_for_the_next_try(store: ArtifactStore) -> None:
    with pytest.raises(RuntimeError, match="out of luck"):
        store.get_or_build("ingest", "demo", identity=identity(), build=half)
    assert list(store.artifacts()) == []
    seen: list[str] = []

    def go_on(folder: Path) -> BuildResult:
        seen.extend(path.name for path in folder.iterdir() if not path.name.startswith("."))
        return write_words(folder)

    outcome = store.get_or_build("ingest", "demo", identity=identity(), build=go_on)
    assert seen == ["half.txt"]
    assert outcome.reason == "first build, going on with half-done work"
    files = [record.path for record in outcome.artifact.manifest.files]
    assert files == ["half.txt", "part/0.bin", "words.txt"], "scratch is not published"


def test_a_build_that_cannot_resume_starts_from_an_empty_folder(store: ArtifactStore) -> None:
    with pytest.raises(RuntimeError):
        store.get_or_build("ingest", "demo", identity=identity(), build=half)
    outcome = store.get_or_build("ingest", "demo", identity=identity(), build=write_words, resumable=False)
    assert "half.txt" not in [record.path for record in outcome.artifact.manifest.files]


def test_half_done_work_of_another_fingerprint_is_removed(store: ArtifactStore) -> None:
    for name in ("demo", "demo-big"):
        with pytest.raises(RuntimeError):
            store.get_or_build("ingest", name, identity=identity(), build=half)
    make(store, identity({"words": 50}))
    left = [path.name.rsplit("-", 1)[0] for path in (store.root / "ingest").glob("*.partial")]
    assert left == ["demo-big"], "another name's work stays"


@pytest.mark.parametrize("word", ["../x", "a/b", "", ".hidden", "x" * 101])
def test_names_cannot_leave_the_store(store: ArtifactStore, word: str) -> None:
    with pytest.raises(ConfigError, match="cannot name an artifact"):
        make(store, name=word)
    with pytest.raises(ConfigError, match="cannot name an artifact"):
        make(store, stage=word)


def test_a_link_is_no_result(store: ArtifactStore) -> None:
    def build(folder: Path) -> BuildResult:
        (folder / "link").symlink_to("/etc/hostname")
        return BuildResult({})

    with pytest.raises(ValueError, match="plain files only"):
        store.get_or_build("ingest", "demo", identity=identity(), build=build)


def test_what_json_cannot_hold_is_no_identity(store: ArtifactStore) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        make(store, identity({"rate": float("nan")}))
    with pytest.raises(TypeError, match="not JSON serializable"):
        make(store, identity({"path": Path("x")}))


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = ArtifactStore(tmp_path / "file" / "artifacts")
    with pytest.raises(
        ResourceError, match=r"cannot write .*/file/artifacts/ingest: Not a directory; .*OPENBOOK_WORKSPACE"
    ):
        make(store)


def test_too_little_disk_is_said_before_the_build(store: ArtifactStore) -> None:
    with pytest.raises(ResourceError, match=r"ingest demo needs 1,000,000\.\d GB in .* are free; free some space"):
        store.get_or_build("ingest", "demo", identity=identity(), build=never, needed_bytes=10**15)


def test_a_disk_that_fills_up_during_the_build_is_named(store: ArtifactStore) -> None:
    def build(folder: Path) -> BuildResult:
        with open("/dev/full", "w") as full:
            full.write("x")
        return BuildResult({"folder": len(folder.name)})

    with pytest.raises(ResourceError, match=r"cannot write .*demo-[0-9a-f]{16}: No space left on device"):
        store.get_or_build("ingest", "demo", identity=identity(), build=build)


def test_the_manifest_is_readable_json(store: ArtifactStore) -> None:
    artifact = make(store).artifact
    content = json.loads((artifact.folder / MANIFEST).read_text())
    assert content["stage"] == "ingest"
    assert content["code"] == {"rag.corpus.wikitext": "c1"}
    assert content["files"][1]["sha256"] == hashlib.sha256(b"one two three").hexdigest()


def test_a_file_that_the_manifest_does_not_name_is_a_mistake(store: ArtifactStore) -> None:
    with pytest.raises(KeyError, match=r"has no file 'nothing\.txt'"):
        make(store).artifact.file("nothing.txt")
