"""Captions of images, for those who want them: what a reader sees below a framed picture.

Pictures float beside the text, so that a caption must not cut the paragraph that its link stands in: it is marked
where it stands and moved before that paragraph when the page is put together.
"""

import re

from rag.corpus.wikitext.marks import DROPPED
from rag.corpus.wikitext.tables import one_line, paragraphs

_START, _END = "\x17", "\x18"  # like those of ``marks``, which a page cannot forge
_MARKED = re.compile(f"{_START}([^{_START}{_END}]*){_END}")
_PARAGRAPH = re.compile(r"(\n[ \t]*\n|\n(?=[*#:;]))")
_MAX_OPTIONS = 1000  # characters of them
_REST = str.maketrans("", "", _START + _END)

# Words of [[File:x|...]] that put the picture into a frame with its caption, in English (which every wiki takes) and in
# the languages of other wikis.
_FRAMED_WORDS = """
thumb thumbnail frame framed enframed mini miniatur gerahmt vignette cadre encadré encadre miniaturadeimagen
miniatura enmarcado enmarcada marco min riquadrato incorniciato miniaturadaimagem commoldura miniatuur omkaderd
miniatyr ram inramad ramme pienoiskuva pienois kehys mały ramka náhled náhľad rám bélyegkép bélyeg miniatűr
keret cadru мини миниатюра обрамить міні мініатюра обрамити рамка умањено küçükresim küçük çerçeve تصغير مصغر
إطار بندانگشتی انگشتدان قاب ממוזער ממוסגר サムネイル フレーム 缩略图 縮圖 有框 섬네일 썸네일 프레임 nhỏ khung
jmpl μικρογραφία πλαίσιο अंगूठाकार marc eta kadro
"""
_FRAMED = frozenset(_FRAMED_WORDS.split())
# Words that say where it stands and how it looks.
_PLACED_WORDS = """
left right center centre none border frameless baseline sub super sup top text-top middle bottom text-bottom
upright links rechts zentriert ohne rahmenlos rand hochkant gauche droite centré néant bordure sans_cadre
redresse izquierda derecha izda dcha izq der dere centro centrado no ninguna borde sinmarco sinistra destra
nessuno bordo esquerda direita esq dir semmoldura gecentreerd geen vänster höger centrerad ingen kantlinje
venstre høyre højre midtstilt sentrer vasen oikea keskellä lewo prawo centruj brak bez vlevo vpravo střed žádné
vľavo vpravo stred žiadny balra jobbra középre stânga dreapta centrat слева справа центр без ліворуч праворуч
ляво дясно лево десно sağ sol orta yok يسار يمين مركز بلا چپ راست وسط هیچ שמאל ימין מרכז ללא 左 右 中央 なし 无
無 居中 置中 왼쪽 오른쪽 가운데 없음 trái phải giữa kiri kanan ka pus αριστερά δεξιά κέντρο esquerra dreta cap
dekstra maldekstra
"""
_PLACED = frozenset(_PLACED_WORDS.split())
_SIZE = re.compile(
    r"upright [\d.]+$|(?:\d+(?:x\d+)?|x\d+) ?(?:px|пкс|pix|piks|بك|פיקסלים|像素|ピクセル|픽셀)*$", re.IGNORECASE
)
_SETTING = re.compile(
    r"(?:alt|link|page|lang|class|upright|thumb|thumbnail|thumbtime|start|end|frame|hochkant|redresse|vignette|mini"
    r"|miniatur|alternativtext|verweis|seite|alternatief|verwijzing|enlace|lien|альт|ссылка|代替文|リンク|替代|链接)\s*=",
    re.IGNORECASE,
)


def image_caption(content: str) -> str:
    """The caption of an image link, given what stands between its brackets; "" where a reader sees none.

    >>> image_caption("File:Lima.jpg|thumb|right|220px|alt=A square|The main square")
    'The main square'
    """
    framed = False
    caption = ""
    for part in content.split("|")[1:]:
        word = part.strip().lower()
        if word in _FRAMED or word.startswith(("thumb=", "thumbnail=", "frame=")):
            framed = True
        elif not (word in _PLACED or _SIZE.match(word) or _SETTING.match(word)):
            caption = part  # the last one counts, even an empty one
    return one_line(caption) if framed else ""


def options_end(text: str, start: int) -> int:
    """Where the options of an image link that is never closed end: what comes then may be its caption or prose.

    >>> text = "File:Lima.jpg|thumb|right|The square"
    >>> text[options_end(text, 0) :]
    'The square'
    """
    target, *parts = text[start : start + _MAX_OPTIONS].partition("\n")[0].split("|")
    end = start + len(target)
    for part in parts:
        word = part.strip().lower()
        if not (word in _FRAMED or word in _PLACED or _SIZE.match(word) or _SETTING.match(word)):
            return end + 1
        end += 1 + len(part)
    return end


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
