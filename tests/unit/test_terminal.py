"""What a person sees: plain lines in a log, bars on a terminal, nothing where no command runs."""

import io

import pytest

from flows.display import Count, PlainDisplay
from flows.terminal import Terminal, counted


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_plain_lines_hold_no_control_characters() -> None:
    out = io.StringIO()
    with Terminal(stream=out, every_seconds=0.0) as terminal, terminal.stage("ingest", "2016") as stage:
        list(terminal.progress("passages")(range(4200)))
        stage.finish("4,200 passages")
    lines = out.getvalue().splitlines()
    assert lines[0].startswith("ingest 2016: 4,200 of 4,200 passages (100%), ")
    assert lines[-1].startswith("ingest 2016: 4,200 passages in 0.")
    assert out.getvalue().replace("\n", "").isprintable()


def test_plain_lines_come_seldom() -> None:
    out = io.StringIO()
    display = PlainDisplay(out, every_seconds=60.0)
    for done in range(1000):
        display.show("encode", Count(done, 1000, "", 1.0))
    assert out.getvalue() == ""


def test_a_terminal_shows_a_bar_and_keeps_the_last_line() -> None:
    out = FakeTerminal()
    with Terminal(stream=out) as terminal, terminal.stage("encode", "2016") as stage:
        list(stage.progress([1, 2, 3]))
        terminal.note("[bold]not markup[/bold]")
    assert "encode 2016: done in 0." in out.getvalue()
    assert "[bold]not markup[/bold]" in out.getvalue()


@pytest.mark.parametrize("out", [io.StringIO(), FakeTerminal()])
def test_a_failed_stage_says_so_and_the_error_passes(out: io.StringIO) -> None:
    with pytest.raises(ZeroDivisionError), Terminal(stream=out) as terminal, terminal.stage("train", "rag-token"):
        raise ZeroDivisionError
    assert "train rag-token: failed after 0." in out.getvalue()


def test_stages_nest_and_progress_belongs_to_the_inner_one() -> None:
    out = io.StringIO()
    with Terminal(stream=out, every_seconds=0.0) as terminal, terminal.stage("ingest"):
        with terminal.stage("world"):
            list(Terminal.current().progress()([1]))
        list(Terminal.current().progress()([1, 2]))
    starts = [line.split(" in ")[0].split(" (")[0] for line in out.getvalue().splitlines()]
    assert starts == ["world: 1 of 1", "world: done", "ingest: 2 of 2", "ingest: done"]


def test_without_a_command_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with Terminal.current().stage("ingest") as stage:
        assert list(stage.progress(range(3))) == [0, 1, 2]
        assert list(Terminal.current().progress("rows")("ab")) == ["a", "b"]
    Terminal.current().note("nobody hears this")
    assert capsys.readouterr() == ("", "")


def test_counting_keeps_lengths_and_their_absence() -> None:
    counts: list[Count] = []
    sized = counted([1, 2], counts.append)
    assert len(sized) == 2  # type: ignore[arg-type]
    assert [list(sized), list(sized)] == [[1, 2], [1, 2]], "as often as the thing itself"
    unsized = counted((number for number in (1, 2)), counts.append)
    assert not hasattr(unsized, "__len__")
    assert list(unsized) == [1, 2]
    assert [count[:2] for count in counts] == [(0, 2), (2, 2), (0, 2), (2, 2), (0, None), (2, None)]
