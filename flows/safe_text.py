"""Text of others on a terminal: passages, titles and answers may hold anything, commands to the terminal too."""

import re

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all of C0 and C1 but tab and line feed


def safe(text: str) -> str:
    """The text without control characters, so that nothing in it can move the cursor or set a title.

    >>> safe("Li\\x1b[2Jma"), safe("two\\nlines")
    ('Li[2Jma', 'two\\nlines')
    """
    return _CONTROLS.sub("", text)
