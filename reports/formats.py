"""A report table as Markdown, LaTeX or rows for a terminal."""

from reports.cells import Cell, ReportTable

PARTIAL_MARK = "†"
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "†": r"\textdagger{}",
    "–": "--",
}
_MARKDOWN = str.maketrans({c: f"\\{c}" for c in "\\`*_[]<>|#"} | {"\n": " ", "\r": " "})


def to_terminal_rows(table: ReportTable) -> list[tuple[str, ...]]:
    """The heading and the rows as plain text, partial cells marked.

    Control characters, which could steer a terminal, are shown as U+FFFD.
    """
    heading = tuple(" ".join(part for part in (column.group, column.label) if part) for column in table.columns)
    return [heading, *(tuple(_printable(cell_text(cell)) for cell in row) for row in table.rows)]


def to_markdown(table: ReportTable) -> str:
    """The table with its title, caption and the reasons of partial cells, as GitHub Markdown."""
    heading, *rows = to_terminal_rows(table)
    ruler = ["---:" if column.numeric else "---" for column in table.columns]
    lines = [
        f"### {markdown_text(table.title)}",
        "",
        markdown_text(table.caption),
        "",
        _md_row(heading),
        "| " + " | ".join(ruler) + " |",
    ]
    lines += [_md_row(row) for row in rows]
    lines += ["", *(f"{PARTIAL_MARK} {markdown_text(note)}" for note in table.notes)] if table.notes else []
    return "\n".join(lines) + "\n"


def to_latex(table: ReportTable) -> str:
    """The table as a LaTeX table environment; needs the package booktabs."""
    heading, *rows = to_terminal_rows(table)
    align = "".join("r" if column.numeric else "l" for column in table.columns)
    notes = "".join(f" \\textdagger{{}} {_tex(note)}." for note in table.notes)
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{_tex(table.title)}. {_tex(table.caption)}{notes}}}",
        rf"\label{{tab:{table.key}}}",
        rf"\begin{{tabular}}{{{align}}}",
        r"\toprule",
        " & ".join(_tex(text) for text in heading) + r" \\",
        r"\midrule",
        *(" & ".join(_tex(text) for text in row) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def cell_text(cell: Cell) -> str:
    """The text of a cell, with its interval and n and the mark of a partial number.

    >>> cell_text(Cell("58.1", detail="47.4 to 68.1; n 93", partial=True))
    '58.1† (47.4 to 68.1; n 93)'
    """
    mark = PARTIAL_MARK if cell.partial else ""
    return f"{cell.text}{mark}" + (f" ({cell.detail})" if cell.detail else "")


def markdown_text(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return text.translate(_MARKDOWN)


def _md_row(texts: tuple[str, ...]) -> str:
    return "| " + " | ".join(markdown_text(text) for text in texts) + " |"


def _tex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text.replace("\n", " "))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " if c in "\n\r\t" else "\ufffd" for c in text)
