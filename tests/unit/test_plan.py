"""What a study will take, and where its sources are."""

from pathlib import Path

import pytest

from flows.plan_study import plan_study, require_fit
from flows.plan_tables import print_plan
from flows.sources import _require_a_date, remote_files
from rag.config import SourceConfig, SourceFormat, parse_study
from rag.corpus.download.files import RemoteFile, WebOptions
from rag.corpus.estimate import IngestRates, estimate_ingest, unpacked_bytes, xml_bytes
from rag.errors import ConfigError
from rag.records import StageEstimate
from tests.support.dump_server import serving
from tests.support.shared_data import shared_data
from tests.support.source_study import write_source_study

_ONE = WebOptions(attempts=1)


def _stages(workers: int, *, fetched: bool = False) -> dict[str, StageEstimate]:
    dump = 24_000_000_000
    rates = IngestRates(10e6, 300.0, workers)
    return {one.stage: one for one in estimate_ingest(dump, xml_bytes("x.bz2", dump), rates, fetched=fetched)}


def test_the_full_english_dump_has_its_known_size() -> None:
    stages = _stages(workers=2)
    assert stages["dump"].disk_bytes == 24_000_000_000
    assert stages["dump"].seconds is None
    assert 20e6 < stages["passages"].rows < 35e6
    assert stages["passages"].seconds is not None
    assert 1 < stages["passages"].seconds / 3600 < 3
    assert _stages(2, fetched=True)["dump"].disk_bytes == 0


def test_more_processes_take_less_time_and_more_memory() -> None:
    one, two, four = (_stages(workers)["passages"] for workers in (1, 2, 4))
    assert one.seconds is not None
    assert two.seconds is not None
    assert four.seconds is not None
    assert one.seconds > 1.6 * two.seconds > 1.6 * 1.6 * four.seconds
    assert one.memory_bytes < two.memory_bytes < four.memory_bytes


def _of(format: SourceFormat, name: str, size: int) -> StageEstimate:
    unpacked = unpacked_bytes(name, size, format)
    stages = estimate_ingest(size, unpacked, IngestRates(8e6, 290.0, 1), fetched=True, format=format)
    return next(one for one in stages if one.stage == "passages")


@pytest.mark.parametrize(
    ("format", "parts", "passages"),
    [
        ("psgs", ("dpr", "psgs_w100.sample751.tsv"), 751),
        ("psgs", ("corpus", "wiki2019", "psgs_w100.tsv.gz"), 20_183),
        ("jsonl", ("wikidump", "snapshot2019", "enwiki-20190720-98articles.jsonl.gz"), 4_563),
        ("fever", ("fever", "wiki2019-intros.derived.jsonl"), 568),
    ],
)
def test_other_formats_are_planned_by_what_their_bytes_hold(
    format: SourceFormat, parts: tuple[str, ...], passages: int
) -> None:
    path = shared_data(*parts)
    assert _of(format, path.name, path.stat().st_size).rows == pytest.approx(passages, rel=0.15)


@pytest.mark.parametrize(
    ("format", "name", "size", "passages", "minutes"),
    [
        ("psgs", "psgs_w100.tsv", 13_400_000_000, 21_015_324, 13),
        ("hf-articles", "train.parquet", 11_600_000_000, 32_000_000, 27),
        ("kilt", "kilt_knowledgesource.json", 37_300_000_000, 22_200_000, 27),
        ("documents", "notes.txt", 1_000_000, 1_600, 0.001),
    ],
)
def test_the_published_files_have_their_known_size(
    format: SourceFormat, name: str, size: int, passages: int, minutes: float
) -> None:
    stage = _of(format, name, size)
    assert stage.rows == pytest.approx(passages, rel=0.1)
    assert stage.seconds is not None
    assert stage.seconds / 60 == pytest.approx(minutes, rel=0.5)
    assert stage.disk_bytes > 290 * stage.rows


def test_a_local_dump_is_planned_from_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENBOOK_WORKERS", "1")
    (tmp_path / "dump.xml").write_bytes(b"x" * 10_000_000)
    plan = plan_study(str(write_source_study(tmp_path, "dump.xml")))
    (source,) = plan.sources
    assert (source.file_bytes, source.unpacked_bytes, source.basis) == (10_000_000, 10_000_000, "on this machine")
    assert plan.measured.cutting is not None
    assert plan.measured.cutting.xml_bytes_per_second > 0
    assert plan.measured.notes == ()  # without a corpus no encoder is wanted
    require_fit(plan)
    print_plan(plan)
    assert "passage-checks" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == [tmp_path / "dump.xml", tmp_path / "study.toml"]  # planning writes nothing


def test_a_published_dump_is_planned_from_its_list_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = (
        b'{"jobs": {"articlesmultistreamdump": {"status": "done", "files": {'
        b'"testwiki-20240801-pages-articles-multistream.xml.bz2": {"size": 1000000, "sha1": "' + b"0" * 40 + b'"},'
        b'"testwiki-20240801-pages-articles-multistream-index.txt.bz2": {"size": 5, "sha1": "' + b"0" * 40 + b'"}}}}}'
    )
    monkeypatch.chdir(tmp_path)
    with serving({"/testwiki/20240801/dumpstatus.json": status}) as server:
        monkeypatch.setenv("OPENBOOK_DUMPS_URL", server.url)
        plan = plan_study(str(write_source_study(tmp_path, "wikimedia:testwiki/20240801")))
    assert (plan.sources[0].file_bytes, plan.sources[0].basis) == (1_000_005, "as published")


def test_a_local_file_of_which_nothing_is_known_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"dump\.xml: no such file"):
        plan_study(str(write_source_study(tmp_path, "dump.xml")))


def test_an_address_without_a_date_is_refused() -> None:
    with pytest.raises(ConfigError, match="wikimedia:WIKI/DATE"):
        remote_files(SourceConfig(path="wikimedia:enwiki"), "https://dumps.wikimedia.org", _ONE)
    found = [RemoteFile("https://x.org/enwiki/20261101/enwiki-20261101-pages-articles.xml.bz2", "n", 1, None)]
    with pytest.raises(ConfigError, match="the newest is 20261101"):
        _require_a_date("wikimedia:enwiki/latest", found)


def test_a_single_file_is_fetched_under_its_name_with_the_sum_of_the_study() -> None:
    config = SourceConfig(path="https://x.org/a/dump.xml.bz2", sha1="0" * 40)
    assert remote_files(config, "", _ONE) == [RemoteFile(config.path, "dump.xml.bz2", None, "0" * 40)]


def test_the_snapshot_before_must_stand_before() -> None:
    tree = {
        "name": "s",
        "title": "s",
        "sources": {"new": {"path": "b", "previous": "old"}, "old": {"path": "a"}},
        "corpora": {},
        "tasks": {},
        "models": {},
    }
    with pytest.raises(ConfigError, match=r"sources\.new\.previous = 'old' must name one that stands before it"):
        parse_study(tree)
