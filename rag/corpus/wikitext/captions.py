"""Captions of images, for those who want them: what a reader sees below a framed picture.

Pictures float beside the text, so that a caption must not cut the paragraph that its link stands in: it is marked
where it stands and moved before that paragraph when the page is put together.
"""

import re

from rag.corpus.wikitext.arguments import Arguments
from rag.corpus.wikitext.image_words import image_words
from rag.corpus.wikitext.marks import DROPPED
from rag.corpus.wikitext.tables import one_line, paragraphs

_START, _END = "\x17", "\x18"  # like those of ``marks``, which a page cannot forge
_MARKED = re.compile(f"{_START}([^{_START}{_END}]*){_END}")
_PARAGRAPH = re.compile(r"(\n[ \t]*\n|\n(?=[*#:;]))")
_MAX_OPTIONS = 1000  # characters of them
_REST = str.maketrans("", "", _START + _END)

_SIZE = re.compile(
    r"upright [\d.]+$|(?:\d+(?:x\d+)?|x\d+) ?(?:px|пкс|pix|piks|بك|פיקסלים|像素|ピクセル|픽셀)*$", re.IGNORECASE
)
_SETTING = re.compile(
    r"(?:alt|link|page|lang|class|upright|thumb|thumbnail|thumbtime|start|end|frame|hochkant|redresse|vignette|mini"
    r"|miniatur|alternativtext|verweis|seite|alternatief|verwijzing|enlace|lien|альт|ссылка|代替文|リンク|替代|链接)\s*=",
    re.IGNORECASE,
)


# Templates that show pictures, several together, cropped or wide: the named arguments with what stands below those, and
# the place of an argument that does.
PICTURES = {
    "multiple image": None, "multiple images": None, "auto images": None, "image array": None, "image frame": None,
    "css image crop": None, "annotated image": None, "photomontage": None, "photo montage": None, "double image": None,
    "triple image": None, "wide image": 2, "tall image": 2, "panorama": None,
}  # fmt: skip
_BELOW = re.compile(r"(?:caption|header|footer|description)\d*$", re.IGNORECASE)


def image_caption(content: str, language: str = "en") -> str:
    """The caption of an image link, given what stands between its brackets; "" where a reader sees none.

    ``language`` is that of the wiki, whose words for the place and look of pictures are no captions.

    >>> image_caption("File:Lima.jpg|thumb|right|220px|alt=A square|The main square")
    'The main square'
    """
    words = image_words(language)
    framed = False
    caption = ""
    for part in content.split("|")[1:]:
        word = part.strip().lower()
        if word in words.framed or word.startswith(("thumb=", "thumbnail=", "frame=")):
            framed = True
        elif not (word in words.placed or _SIZE.match(word) or _SETTING.match(word)):
            caption = part  # the last one counts, even an empty one
    return one_line(caption) if framed else ""


def options_end(text: str, start: int, language: str = "en") -> int:
    """Where the options of an image link that is never closed end: what comes then may be its caption or prose.

    >>> text = "File:Lima.jpg|thumb|right|The square"
    >>> text[options_end(text, 0) :]
    'The square'
    """
    words = image_words(language)
    target, *parts = text[start : start + _MAX_OPTIONS].partition("\n")[0].split("|")
    end = start + len(target)
    for part in parts:
        word = part.strip().lower()
        if not (word in words.framed or word in words.placed or _SIZE.match(word) or _SETTING.match(word)):
            return end + 1
        end += 1 + len(part)
    return end


def picture_captions(arguments: Arguments, place: int | None) -> str:
    """The captions of a template that shows pictures, each on its way to ``place_captions``.

    >>> len(picture_captions(Arguments([], {"image1": "a.jpg", "caption1": "A", "caption2": "B"}), None))
    6
    """
    texts = [value for name, value in arguments.named.items() if _BELOW.match(name)]
    if place is not None:
        texts.append(arguments[place])
    return "".join(marked_caption(shown) for text in texts if (shown := one_line(text)))


def marked_caption(caption: str) -> str:
    """A caption on its way to ``place_captions``."""
    return f"{_START}{caption.translate(_REST)}{_END}"


def place_captions(text: str) -> str:
    """``text`` with every marked caption as a paragraph before the paragraph or list item that it stands in."""
    pieces = _PARAGRAPH.split(text)
    for index in range(0, len(pieces), 2):
        if _START in pieces[index]:
            captions = _MARKED.findall(pieces[index])
            pieces[index] = paragraphs(filter(None, captions)) + _MARKED.sub(DROPPED, pieces[index])
    return "".join(pieces).translate(_REST)
