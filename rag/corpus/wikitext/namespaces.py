"""Which links of a wiki are images and categories, by the names of its namespaces.

A dump's siteinfo names each namespace as the wiki calls it today. Pages also use the English names, which work in
every wiki, and names of earlier days, which siteinfo does not list.
"""

from collections.abc import Mapping

from rag.config import PassageConfig
from rag.corpus.wikitext import RenderOptions
from rag.corpus.wikitext.interlanguage import language_of

_FILE, _CATEGORY = 6, 14

# A language a line: the names of the file namespace, then those of the category namespace, new and old.
_LOCAL_NAMES = """
af: lêer, beeld; kategorie
ar: ملف, صورة; تصنيف
arz: ملف, صورة; تصنيف
az: fayl, şəkil; kateqoriya
be: файл, выява; катэгорыя
bg: файл, картинка; категория
bn: চিত্র, ফাইল; বিষয়শ্রেণী
bs: datoteka, slika; kategorija
ca: fitxer, imatge; categoria
ceb: payl, imahen; kategoriya
cs: soubor, obrázek; kategorie
cy: delwedd, ffeil; categori
da: fil, billede; kategori
de: datei, bild; kategorie
el: αρχείο, εικόνα; κατηγορία
eo: dosiero; kategorio
es: archivo, imagen; categoría
et: fail, pilt; kategooria
eu: fitxategi, irudi; kategoria
fa: پرونده, تصویر; رده
fi: tiedosto, kuva; luokka
fr: fichier, image; catégorie
ga: íomhá; catagóir
gl: ficheiro, imaxe, arquivo; categoría
he: קובץ, תמונה; קטגוריה
hi: चित्र, फ़ाइल; श्रेणी
hr: datoteka, slika; kategorija
hu: fájl, kép; kategória
hy: պատկեր, ֆայլ; կատեգորիա
id: berkas, gambar; kategori
is: mynd; flokkur
it: file, immagine; categoria
ja: ファイル, 画像; カテゴリ, category
ka: ფაილი, სურათი; კატეგორია
kk: сурет, файл; санат
ko: 파일, 그림; 분류
la: fasciculus, imago; categoria
lt: vaizdas; kategorija
lv: attēls; kategorija
mk: податотека, слика; категорија
ml: പ്രമാണം, ചിത്രം; വർഗ്ഗം
mr: चित्र; वर्ग
ms: fail, imej; kategori
nl: bestand, afbeelding; categorie
nn: fil, bilete; kategori
no: fil, bilde; kategori
pl: plik, grafika; kategoria
pt: ficheiro, arquivo, imagem; categoria
ro: fișier, fişier, imagine; categorie
ru: файл, изображение; категория
sh: datoteka, slika; kategorija
sk: súbor, obrázok; kategória
sl: slika, datoteka; kategorija
sq: skeda, figura; kategoria
sr: датотека, слика, datoteka, slika; категорија, kategorija
sv: fil, bild; kategori
ta: படிமம்; பகுப்பு
te: దస్త్రం, బొమ్మ; వర్గం
th: ไฟล์, ภาพ; หมวดหมู่
tl: talaksan; kategorya
tr: dosya, resim; kategori
uk: файл, зображення; категорія
ur: فائل, تصویر; زمرہ
vi: tập tin, hình; thể loại
zh: file, 文件, 档案, 檔案, 图像, 圖像; category, 分类, 分類
"""


def render_options(config: PassageConfig, namespaces: Mapping[int, str], dbname: str = "") -> RenderOptions:
    """How pages of a wiki with these namespaces (number -> local name) are rendered.

    ``dbname`` is the name of its database, which tells its language; where it does not, the namespaces tell it.

    >>> options = render_options(PassageConfig(), {6: "Datei", 14: "Kategorie"})
    >>> sorted(options.file_namespaces), sorted(options.hidden_namespaces)
    (['bild', 'datei', 'file', 'image'], ['category', 'kategorie'])
    """
    local_file, local_category = _name(namespaces, _FILE), _name(namespaces, _CATEGORY)
    files, categories = {"file", "image", local_file}, {"category", local_category}
    language = language_of(dbname)
    is_english = local_file in ("", "file") and local_category in ("", "category")
    for code, its_files, its_categories in _LANGUAGES:
        # Both names must be the language's: "kategorie" alone is German, Czech and Afrikaans.
        if local_file in its_files and local_category in its_categories:
            files |= its_files
            categories |= its_categories
            language = language or ("" if is_english else code)
    return RenderOptions(
        headings=config.headings,
        tables=config.tables,
        infoboxes=config.infoboxes,
        captions=config.captions,
        file_namespaces=frozenset(files - {""}),
        hidden_namespaces=frozenset(categories - {""}),
        language=language or "en",
    )


def _name(namespaces: Mapping[int, str], number: int) -> str:
    return namespaces.get(number, "").replace("_", " ").strip().lower()


def _names(listed: str) -> frozenset[str]:
    return frozenset(name.strip() for name in listed.split(","))


def _languages() -> tuple[tuple[str, frozenset[str], frozenset[str]], ...]:
    lines = (line.partition(":") for line in _LOCAL_NAMES.split("\n") if line)
    parts = ((code, *names.partition(";")) for code, _, names in lines)
    return tuple((code, _names(files), _names(categories)) for code, files, _, categories in parts)


_LANGUAGES = _languages()
