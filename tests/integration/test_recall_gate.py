"""The recall gate through the command line: an index that finds too little stops the study and says what to change."""

import re
from pathlib import Path

import duckdb
import pytest

from tests.support.cli import openbook
from tests.support.tiny_study import write_tiny_study

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

_THIN = (  # eight passages in four lists: one list has fewer than the five that are asked for
    "--set", "index.kind=ivf-flat", "--set", "index.nlist=4", "--set", "index.nprobe=1",
    "--set", "index.recall_at=5", "--set", "index.min_recall=0.95",
)  # fmt: skip


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    folder = tmp_path_factory.mktemp("gate")
    study, workspace = write_tiny_study(folder / "study"), folder / "workspace"
    result = openbook("run", str(study), *_THIN, workspace=workspace)
    assert result.returncode == 11, result.stderr
    return study, workspace, result.stderr


def _rows(workspace: Path, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(workspace / "database" / "results.duckdb"), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def test_the_study_stops_before_any_model_is_trained_and_says_what_to_change(stopped: tuple[Path, Path, str]) -> None:
    _, workspace, said = stopped
    said = " ".join(said.split())
    assert "the ivf-flat index of 2016 finds 0." in said
    assert re.search(r"the study asks for 0\.95: index\.nprobe = [24] reaches (0\.9[5-9]\d|1\.000) \(now 1: 0\.", said)
    assert not (workspace / "artifacts" / "model").exists()


def test_what_was_measured_is_in_the_database(stopped: tuple[Path, Path, str]) -> None:
    _, workspace, _ = stopped
    recalls = _rows(workspace, "SELECT k, recall, low, high, n, min_recall FROM index_recall ORDER BY k")
    assert [row[0] for row in recalls] == [1, 5, 10, 20, 50, 100]
    assert [row[5] for row in recalls] == [None, 0.95, None, None, None, None]
    for _, recall, low, high, n, _ in recalls:
        assert 0 <= low <= recall + 1e-12 <= high + 2e-12  # of equal values the mean rounds
        assert n == 6
    points = _rows(
        workspace, "SELECT nprobe, configured, single_seconds > 0, index_bytes > 0 FROM index_sweep ORDER BY point"
    )
    assert points[0] == (1, True, True, True)
    assert not any(configured for _, configured, _, _ in points[1:])
    assert _rows(workspace, "SELECT count(*) FROM v_index_recall WHERE NOT passed") == [(1,)]


def test_a_second_call_stops_as_well_and_the_advice_passes_the_gate(stopped: tuple[Path, Path, str]) -> None:
    study, workspace, said = stopped
    again = openbook("run", str(study), *_THIN, workspace=workspace)
    assert again.returncode == 11
    assert "of 2016 finds 0." in again.stderr
    advised = re.search(r"index\.nprobe = \d", said)
    assert advised
    better = openbook("run", str(study), *_THIN, "--set", advised[0].replace(" ", ""), workspace=workspace)
    assert "the ivf-flat index of 2016" not in better.stderr
    gated = "SELECT passed, count(*) FROM v_index_recall WHERE corpus = '2016' AND k = 5 GROUP BY ALL ORDER BY ALL"
    assert _rows(workspace, gated) == [(False, 1), (True, 1)]
