"""Infoboxes as lines of text, for those who want what stands in them: a field a line, "name: value"."""

import re

from rag.corpus.wikitext.arguments import Arguments
from rag.corpus.wikitext.tables import one_line, paragraphs

_PREFIXES = (
    "infobox", "taxobox", "automatic taxobox", "speciesbox", "subspeciesbox", "hybridbox", "virusbox", "geobox",
    "chembox", "drugbox", "protbox", "starbox", "mycomorphbox", "ichnobox", "paraphyletic group", "planetbox",
)  # fmt: skip
# Fields that say how the box looks, or that only machines read: by any word of the name, or by its last.
_LOOKS = re.compile(
    r"(?:^|[ _-])(?:(?:image|img|photo|picture|logo|map|mapsize|pushpin|signature|px|embed|child|nocat|noicon"
    r"|fetchwikidata|suppressfields|coord|coords|coordinates)\d*(?=$|[ _-])"
    r"|(?:icon|cover|banner|seal|shield|emblem|colou?r|bgcolor|background|align|float|alt|upright|bodyclass|lat|lon|long"
    r"|lat[dms]|lats|latns|long[dms]|longs|longew|lat_[dms]|long_[dms]|refs?|references?|dateformat|wikidata|qid"
    r"|autoconvert|smiles|inchi|stdinchi|inchikey|stdinchikey|jmol|unii)\d*$)",
    re.IGNORECASE,
)
_CSS = re.compile(r"[a-z-]{3,30}\s*:\s*[#\w(), .%-]+(?:;|$)", re.IGNORECASE)
_CAPTION = re.compile(r"(?:^|[ _])(?:caption|legend)\d*$", re.IGNORECASE)
_INNER_BOX = re.compile(r"(?:module|embedded|misc|section|nested|extra)\d*$", re.IGNORECASE)
_UNIT = re.compile(r"(?:^|[_ ])(?:[kcmd]?m|mi|ft|in|yd)[23]$", re.IGNORECASE)
_FILE = re.compile(r"[^\n|]+\.(?:jpe?g|png|svg|gif|tiff?|ogg|ogv|oga|webm|webp|pdf|djvu|stl|mid)$", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
_NO_TEXT = re.compile(
    r"(?:\d*(?:x\d+)? ?px|#[0-9a-f]{3,8}|y|yes|no|none|on|off|auto|increase|decrease|steady)$", re.IGNORECASE
)
# A field that names another one: subdivision_type = Country, subdivision_name = Peru.
_LABELS = (("_type", "_name"), ("_title", "_name"), ("_name", "_info"), ("_title", ""), ("_label", ""))


def is_infobox(name: str) -> bool:
    """Whether the template of this lower-case name is a box of facts about the page's subject."""
    return name.startswith(_PREFIXES) or name.endswith(" infobox")


def infobox_text(arguments: Arguments, captions: bool) -> str:
    """The fields that have a text, as paragraphs; what says how the box looks is left out.

    >>> infobox_text(Arguments([], {"birth_place": "Lima", "image": "x.jpg", "width": "200px"}), False)
    '\\n\\nbirth place: Lima\\n\\n'
    """
    labels = _labels(arguments.named)
    used = {label for label, _ in labels.values()}
    lines = []
    for name, value in arguments.named.items():
        if name in used or not _is_text(name, value, captions):
            continue
        if _INNER_BOX.match(name):  # the lines of a box inside this one
            lines += [line.strip() for line in value.split("\n\n")]
            continue
        shown = one_line(f"\n{value}")
        label = one_line(labels[name][1]) if name in labels else _words(name)
        lines.append(f"{label}: {shown}" if shown and label else shown)
    return paragraphs(line for line in lines if line)


def _is_text(name: str, value: str, captions: bool) -> bool:
    if _CAPTION.search(name):
        return captions
    if _LOOKS.search(name) or _FILE.match(value) or _NO_TEXT.match(value):
        return False
    return not (name.lower().endswith("style") and _CSS.match(value))


def _words(name: str) -> str:
    """
    >>> _words("birth_place"), _words("leader_name1"), _words("area_km2")
    ('birth place', 'leader name 1', 'area km2')
    """
    stem, number = ("", name) if _UNIT.search(name) else _stem(name)
    return " ".join(_CAMEL.sub(" ", f"{stem} {number}").replace("_", " ").split())


def _stem(name: str) -> tuple[str, str]:
    """A name and the number at its end."""
    stem = name.rstrip("0123456789")
    return stem, name[len(stem) :]


def _labels(named: dict[str, str]) -> dict[str, tuple[str, str]]:
    """For a field that another one names: that one and the name."""
    labels: dict[str, tuple[str, str]] = {}
    for name, value in named.items():
        stem, number = _stem(name)
        if stem in ("label", "header") and named.get(f"data{number}"):
            labels.setdefault(f"data{number}", (name, value))
        for label, shown in _LABELS:
            target = stem.removesuffix(label) + shown + number
            if value and "\n" not in value and stem.endswith(label) and target != name and named.get(target):
                labels.setdefault(target, (name, value))
                break
    return labels
