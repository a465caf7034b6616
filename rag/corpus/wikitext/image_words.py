"""Words of [[File:x|...]] that say how a picture stands on the page, in English, which every wiki takes, and in others.

A word of another language is an ordinary word elsewhere, "Cap" or "Rand", and may be somebody's caption.
"""

from functools import lru_cache
from typing import NamedTuple

# A language a line, or several lines: the words that put the picture into a frame with its caption, then those that say
# where it stands and how it looks.
_WORDS = """
en: thumb thumbnail frame framed enframed; left right center centre none border frameless upright
en:; baseline sub super sup top text-top middle bottom text-bottom
ar: تصغير مصغر إطار; يسار يمين مركز بلا
be: міні мініяцюра; злева справа цэнтр няма
bg: мини миниатюра рамка; ляво дясно център
ca: miniatura marc; esquerra dreta centre cap
cs: náhled rám; vlevo vpravo střed žádné
da: mini miniature ramme indramme; venstre højre ingen midt centreret
de: mini miniatur gerahmt; links rechts zentriert ohne rahmenlos rand hochkant
el: μικρογραφία πλαίσιο; αριστερά δεξιά κέντρο
eo: eta kadro; dekstra maldekstra centro
es: miniaturadeimagen miniatura mini enmarcado enmarcada marco; izquierda derecha izda dcha izq der dere
es:; centro centrado no ninguna borde sinmarco
fa: بندانگشتی انگشتدان قاب; چپ راست وسط هیچ
fi: pienoiskuva pienois kehys; vasen oikea keskellä
fr: vignette cadre encadré encadre; gauche droite centré néant bordure sans_cadre redresse
he: ממוזער ממוסגר; שמאל ימין מרכז ללא
hi: अंगूठाकार;
hu: bélyegkép bélyeg miniatűr keret; balra jobbra középre
id: jmpl; kiri kanan pus ka
it: min miniatura riquadrato incorniciato; sinistra destra centro nessuno bordo
ja: サムネイル フレーム; 左 右 中央 なし 無し
ko: 섬네일 썸네일 프레임; 왼쪽 오른쪽 가운데 없음
nl: miniatuur mini omkaderd kader; links rechts gecentreerd geen rand
no: mini miniatyr ramme; venstre høyre midtstilt sentrer ingen
pl: mały ramka; lewo prawo centruj brak bez
pt: miniaturadaimagem miniatura commoldura; esquerda direita esq dir centro semmoldura
ro: mini miniatura cadru; stânga dreapta centrat
ru: мини миниатюра обрамить; слева справа центр без
sk: náhľad rám; vľavo vpravo stred žiadny
sr: мини умањено рамка; лево десно центар
sv: mini miniatyr ram inramad; vänster höger centrerad ingen kantlinje
tr: küçükresim küçük çerçeve; sağ sol orta yok
uk: міні мініатюра обрамити; ліворуч праворуч центр без
vi: nhỏ khung; trái phải giữa
zh: 缩略图 縮圖 有框; 左 右 无 無 居中 置中
"""
_SAME = {"nn": "no", "nb": "no", "gl": "es", "hr": "sr", "bs": "sr", "sh": "sr", "simple": "en"}


class ImageWords(NamedTuple):
    """The words of one wiki."""

    framed: frozenset[str]
    placed: frozenset[str]


_NO_WORDS = ImageWords(frozenset(), frozenset())


@lru_cache(maxsize=400)
def image_words(language: str) -> ImageWords:
    """The words of English and of the wiki's language.

    >>> "rand" in image_words("de").placed, "rand" in image_words("en").placed
    (True, False)
    """
    english, own = _TABLE["en"], _TABLE.get(_SAME.get(language, language), _TABLE["en"])
    return ImageWords(english.framed | own.framed, english.placed | own.placed)


def _table() -> dict[str, ImageWords]:
    table: dict[str, ImageWords] = {}
    for line in _WORDS.strip().split("\n"):
        code, _, words = line.partition(":")
        framed, _, placed = words.partition(";")
        known = table.get(code, _NO_WORDS)
        table[code] = ImageWords(known.framed.union(framed.split()), known.placed.union(placed.split()))
    return table


_TABLE = _table()
