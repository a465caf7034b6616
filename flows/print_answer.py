"""An answer as a person reads it on a terminal: what it says, and how much it leans on which passages."""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from flows.safe_text import safe

if TYPE_CHECKING:
    from flows.ask_model import Asked
    from rag.records import Prediction, RetrievedPassage, TokenEvidence

_SNIPPET_WORDS = 40
_INDENT = 4


def print_answer(asked: "Asked", candidates: int = 1) -> None:
    """The answer, then its citations by posterior, best first; with more than one candidate, all that were found."""
    console = Console()
    made = asked.prediction
    if made.error is not None:
        console.print(Text(safe(f"no answer: {made.error}"), style="bold"))
        return
    cited = sorted(made.retrieved, key=lambda passage: -passage.posterior)
    numbers = {passage.rank: number for number, passage in enumerate(cited, start=1)}
    console.print(Text(safe(made.text) or "(an empty answer)", style="bold underline"))
    about = f"log p {made.logprob:.2f}; {asked.model} over {asked.corpus}, {_count(len(cited), 'passage')}"
    console.print(Text(f"{about}, {made.seconds * 1000:.0f} ms", style="dim"))
    if asked.caveat:
        console.print(Text(safe(f"caution: {asked.caveat}"), style="bold"))
    if made.label_probs:
        _print_labels(console, made)
    elif candidates > 1:
        _print_candidates(console, made, candidates)
    if made.tokens:
        console.print(Text("\nEach part with the passage that it leans on, and how much:", style="dim"))
        console.print(Padding(_leaning(made.tokens, numbers), (0, 0, 0, _INDENT), expand=False))
    for number, passage in enumerate(cited, start=1):
        _print_citation(console, number, passage, made.text, asked.urls.get(passage.passage_id, ""))


def _print_candidates(console: Console, made: "Prediction", wanted: int) -> None:
    found = len(made.candidates)
    fewer = f" of {wanted} looked for" if found < wanted else ""
    console.print(Text(f"\n{_count(found, 'distinct answer')}{fewer}, with log p:", style="dim"))
    for one in made.candidates[:wanted]:
        console.print(
            Padding(Text(f"{one.logprob:8.2f}  {safe(one.text) or '(empty)'}"), (0, 0, 0, _INDENT), expand=False)
        )
    if found > wanted:
        console.print(Padding(Text(f"and {found - wanted} more", style="dim"), (0, 0, 0, _INDENT), expand=False))


def _print_labels(console: Console, made: "Prediction") -> None:
    console.print(Text("\nThe probability of every label:", style="dim"))
    for label, prob in sorted(made.label_probs, key=lambda one: -one.prob):
        console.print(Padding(Text(f"{prob:8.2f}  {safe(label)}"), (0, 0, 0, _INDENT), expand=False))


def _leaning(tokens: Sequence["TokenEvidence"], numbers: dict[int, int]) -> Text:
    """Runs of tokens that lean most on one passage, each with its number and the mean posterior.

    >>> from rag.records import TokenEvidence
    >>> halves = [TokenEvidence("Lima", (0.9, 0.1)), TokenEvidence(" is big", (0.2, 0.8))]
    >>> _leaning(halves, {0: 2, 1: 1}).plain
    'Lima [2: 0.90]  is big [1: 0.80]'
    """
    line = Text()
    written = [token for token in tokens if token.text]
    for rank, group in groupby(written, key=lambda token: token.posterior.index(max(token.posterior))):
        run = list(group)
        mean = sum(token.posterior[rank] for token in run) / len(run)
        line.append("  " if line else "")
        line.append(safe("".join(token.text for token in run)).strip(), style="bold")
        line.append(f" [{numbers[rank]}: {mean:.2f}]", style="dim")
    return line


def _print_citation(console: Console, number: int, passage: "RetrievedPassage", answer: str, url: str) -> None:
    head = Text(f"\n[{number}] ")
    head.append(safe(passage.title), style="bold" if number == 1 else "")
    head.append(f"  {'cited, ' if number == 1 else ''}posterior {passage.posterior:.2f}, prior {passage.prior:.2f}")
    head.append(f", {passage.passage_id}", style="dim")
    console.print(head)
    shown = Text(safe(snippet(passage.text, answer)))
    if answer:
        shown.highlight_regex(_standing(safe(answer)), style="bold")
    console.print(Padding(shown, (0, 0, 0, _INDENT), expand=False))
    if url:
        console.print(Text(" " * _INDENT + url, style="dim"), soft_wrap=True)


def snippet(text: str, answer: str, words: int = _SNIPPET_WORDS) -> str:
    """The part of a passage around the answer, or its beginning where the answer does not stand in it.

    >>> snippet("the capital of Peru since 1535 is Lima , on the coast", "lima", words=5)
    '… 1535 is Lima , on …'
    """
    all_words = text.split()
    found = _standing(answer).search(text) if answer else None
    before = len(text[: found.start()].split()) if found else 0
    first = max(0, min(before - words // 2, len(all_words) - words))
    shown = " ".join(all_words[first : first + words])
    return f"{'… ' if first else ''}{shown}{' …' if first + words < len(all_words) else ''}"


def _standing(answer: str) -> re.Pattern[str]:
    """Where an answer stands as words of its own, in either case."""
    return re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)", re.IGNORECASE)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
