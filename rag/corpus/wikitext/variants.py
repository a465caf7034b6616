"""Markup of wikis that show one language in several scripts: -{zh-hans:...; zh-hant:...}-.

Language: https://www.mediawiki.org/wiki/Writing_systems/Syntax
"""

import re

from rag.corpus.wikitext.marks import DROPPED

_MARKUP = re.compile(r"-\{([^{}\n]{0,500})\}-")
_CODE = re.compile(r"\s*((?:zh|sr|kk|ku|iu|uz|gan|shi|tg|crh)(?:-[a-z]{2,6})?)\s*:")
# A reader who has chosen nothing sees the text as it is written; of several forms we take the first of these.
_PREFERRED = ("zh-hans", "zh-cn", "zh", "sr-ec", "sr-cyrl")
_SILENT = ("H", "T", "-")  # rules for the rest of the page, its title, and rules that end


def one_variant(text: str) -> str:
    """``text`` with one form of what is written in several.

    >>> one_variant("-{zh-hans:计算机; zh-hant:電腦}- -{zh-tw|B}- a-{b")
    '计算机 B a-{b'
    """
    return _MARKUP.sub(_shown, text) if "{" in text and "-{" in text else text


def _shown(markup: re.Match[str]) -> str:
    flags, pipe, body = markup.group(1).rpartition("|")
    if pipe and any(flag.strip() in _SILENT for flag in flags.split(";")):
        return DROPPED
    forms: dict[str, str] = {}
    for rule in body.split(";"):
        code = _CODE.match(rule)
        if not code:
            return body if not forms else next(iter(forms.values()))
        forms[code.group(1)] = rule[code.end() :].strip()
    return next((forms[code] for code in _PREFERRED if code in forms), next(iter(forms.values())))
