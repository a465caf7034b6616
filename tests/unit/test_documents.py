"""A folder of one's own documents: what each kind says, and why some say nothing."""

import io
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pypdf import PdfReader, PdfWriter

from rag.corpus.sources.html import html_document, markdown_document
from rag.corpus.sources.pdf import pdf_document
from rag.corpus.sources.read import Article, Unreadable, read_articles
from rag.errors import DataError
from tests.support.tiny_pdf import tiny_pdf


def _write(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def _read(root: Path) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """Title and text of the articles, and the reasons of the rest, by key."""
    found = list(read_articles(root, "documents"))
    articles = {item.key: (item.title, item.text) for item in found if isinstance(item, Article)}
    return articles, {item.key: item.reason for item in found if isinstance(item, Unreadable)}


def test_each_kind_of_document_has_its_title_and_text(tmp_path: Path) -> None:
    root = _write(
        tmp_path,
        {
            "notes/plain.txt": "First line.\r\n\r\nSecond\tline.\x0c",
            "notes/guide.md": "---\ntitle: x\n---\n# The *guide*\n\nRead `this`.\n\n## Part\n\n* one\n* two\n",
            "page.HTML": "<title>A page</title><h1>Top</h1><p>Body &amp; soul</p>",
            "paper.pdf": tiny_pdf(["Lima is the capi-\ntal of Peru.\nIt is old.", "Page two."], title="On Lima"),
        },
    )
    articles, reasons = _read(root)
    assert reasons == {}
    assert articles == {
        "notes/guide.md": ("The guide", "Read this.\nPart\none\ntwo"),
        "notes/plain.txt": ("plain", "First line.\nSecond line."),
        "page.HTML": ("A page", "Top\nBody & soul"),
        "paper.pdf": ("On Lima", "Lima is the capital of Peru. It is old.\nPage two."),
    }
    assert list(articles) == sorted(articles)


def test_what_cannot_be_read_is_kept_with_its_reason(tmp_path: Path) -> None:
    outside = _write(tmp_path / "outside", {"secret.txt": "secret", "more/x.txt": "x"})
    root = _write(
        tmp_path / "root",
        {
            "a.docx": b"PK",
            "b": "no ending",
            "c.txt": b"caf\xe9",
            "d.txt": " \n",
            "e.pdf": b"%PDF-1.4 and then nothing",
            "f.pdf": tiny_pdf([None]),
            "g.md": "version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
            "h.txt": b"",
            ".hidden.txt": "unseen",
            ".git/config.txt": "unseen",
            "good.txt": "Good.",
        },
    )
    (root / "link.txt").symlink_to(outside / "secret.txt")
    (root / "linked").symlink_to(outside / "more")
    (root / "loop.txt").symlink_to("loop.txt")
    (root / "twin.txt").symlink_to("good.txt")
    os.mkfifo(root / "pipe.txt")
    articles, reasons = _read(root)
    assert articles == {"good.txt": ("good", "Good."), "twin.txt": ("twin", "Good.")}
    wanted = {
        "a.docx": "no such documents",
        "b": "without an ending",
        "c.txt": "not UTF-8 at byte 3",
        "d.txt": "text is empty",
        "e.pdf": "damaged PDF",
        "f.pdf": "text recognition",
        "g.md": "LFS",
        "h.txt": "empty",
        "link.txt": "leaves the folder",
        "linked": "leaves the folder",
        "loop.txt": "leads nowhere",
        "pipe.txt": "no regular file",
    }
    assert {key: key if want in reasons.get(key, "") else reasons.get(key) for key, want in wanted.items()} == {
        key: key for key in reasons
    }


def test_names_that_are_no_text_or_hold_line_ends_are_keys_all_the_same(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("Coffee.")
    (tmp_path / "two\nlines.txt").write_text("Lines.")
    (tmp_path / "e\u0301.txt").write_text("Accent.")
    articles, reasons = _read(tmp_path)
    assert reasons == {}
    assert set(articles) == {"caf\ufffd.txt", "two lines.txt", "é.txt"}


def test_a_name_that_is_no_text_is_a_printable_reject(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.d\xe9c")).write_text("Coffee.")
    (tmp_path / os.fsdecode(b"caf\xe9.pdf")).write_text("no PDF")
    (tmp_path / os.fsdecode(b"a\xff.txt")).write_text("One.")
    (tmp_path / os.fsdecode(b"a\xfe.txt")).write_text("Two.")
    items = list(read_articles(tmp_path, "documents"))
    assert [item.key for item in items] == ["a\ufffd.txt", "a\ufffd.txt", "caf\ufffd.d\ufffdc", "caf\ufffd.pdf"]
    reasons = [item.reason for item in items if isinstance(item, Unreadable)]
    assert "was there before" in reasons[0]
    assert reasons[1].startswith(".d\ufffdc: no such documents are read")
    assert all(str(item).encode() for item in items)


def test_one_document_alone_and_folders_without_any(tmp_path: Path) -> None:
    _write(tmp_path, {"only.txt": "Only this.", "empty/.hidden": "x"})
    assert _read(tmp_path / "only.txt") == ({"only.txt": ("only", "Only this.")}, {})
    with pytest.raises(DataError, match="holds no files"):
        list(read_articles(tmp_path / "empty", "documents"))
    with pytest.raises(DataError, match="no folder"):
        list(read_articles(tmp_path / "missing", "documents"))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("\ufeffé".encode(), "é"),
        ("é".encode("utf-16"), "é"),
        (b'<meta charset="iso-8859-1"><p>caf\xe9', "café"),
        ('<?xml version="1.0" encoding="utf-8"?><html><meta charset=latin-1><p>café'.encode(), "café"),
        (b"<meta content='text/html; charset=windows-1252'><p>\x93a\x94", "“a”"),
    ],
)
def test_encodings(tmp_path: Path, data: bytes, text: str) -> None:
    name = "a.html" if b"<" in data else "a.txt"
    assert _read(_write(tmp_path, {name: data})) == ({name: ("a", text)}, {})


@pytest.mark.parametrize("data", [b"<meta charset=none-such><p>\xe9", b"<meta charset=ascii><p>\xe9", b"<p>\xe9"])
def test_pages_in_no_encoding_at_all(tmp_path: Path, data: bytes) -> None:
    articles, reasons = _read(_write(tmp_path, {"a.html": data}))
    assert not articles
    assert "UTF-8" in reasons["a.html"]


@pytest.mark.parametrize(
    ("markup", "title", "text"),
    [
        ("<p>a<script>x</script><style>y</style><nav>Home</nav><noscript>n</noscript>b</p>", "", "ab"),
        ("<h2>Head</h2>tail<p>x", "Head", "tail\nx"),
        ("<table><tr><th>A<th>B<tr><td>1<td>2</table>", "", "A B\n1 2"),
        ("<ul><li>one<ul><li>two</ul><li>three</ul>", "", "one\ntwo\nthree"),
        ("<p>in<b>side</b> <i>words</i>,\n  wrapped</p>", "", "inside words, wrapped"),
        ("<pre>a\n  b</pre><p>c\nd</p>", "", "a\nb\nc d"),
        ("<p hidden>no</p><p>yes<!-- no --><?no no?></p>", "", "yes"),
        ("<p>1 &lt; 2 &eacute; &#x41; &nbsp; z</p>", "", "1 < 2 é A z"),
        ("<p>&lt;script&gt;alert(1)&lt;/script&gt;", "", "<script>alert(1)</script>"),
        ("<p>unclosed <b>bold <i>both</p><div>next", "", "unclosed bold both\nnext"),
        ("a<br>b<hr/>c\x00d", "", "a\nb\ncd"),
        ("<svg><title>icon</title></svg><p>x", "", "x"),
        ("", "", ""),
    ],
)
def test_html(markup: str, title: str, text: str) -> None:
    assert html_document(markup) == (title, text)


def test_html_as_deep_as_it_likes() -> None:
    assert html_document("<div>" * 1500 + "deep" + "</div>" * 1500 + "<p>after").text == "deep\nafter"
    with pytest.raises(DataError, match="2,048 levels"):
        html_document("<div>" * 5000 + "deep" + "</div>" * 5000 + "<p>after")


@pytest.mark.parametrize(
    ("markup", "title", "text"),
    [
        ("Title\n=====\n\nText\nwrapped.\n", "Title", "Text wrapped."),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n", "", "a b\n1 2"),
        (
            "[link](https://example.org) ![alt](x.png) <script>x</script>\n\n```python\nx = 1\ny = 2\n```",
            "",
            "link\nx = 1\ny = 2",
        ),
        ("no --- head\n---\n", "no --- head", ""),
        ("---\nnever closed", "", "never closed"),
    ],
)
def test_markdown(markup: str, title: str, text: str) -> None:
    assert markdown_document(markup) == (title, text)


def test_a_pdf_of_text_and_scans_names_the_scans(tmp_path: Path) -> None:
    _write(tmp_path, {"mixed.pdf": tiny_pdf(["Text.", None, "", "More."])})
    article, page = read_articles(tmp_path, "documents")
    assert article[3:5] == ("mixed", "Text.\nMore.")
    assert isinstance(page, Unreadable)
    assert (page.key, page.row) == ("mixed.pdf", 2)
    assert "text recognition" in page.reason


@pytest.mark.parametrize(("password", "readable"), [("", True), ("secret", False)])
def test_encrypted_pdfs(password: str, readable: bool) -> None:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(tiny_pdf(["Text."]))))
    writer.encrypt(password, owner_password="owner", algorithm="RC4-128")
    data = io.BytesIO()
    writer.write(data)
    if readable:
        assert pdf_document(data.getvalue()).text == "Text."
    else:
        with pytest.raises(DataError, match="encrypted with a password"):
            pdf_document(data.getvalue())


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(0, 900), st.binary(min_size=1, max_size=8))
def test_a_damaged_pdf_is_read_or_refused(place: int, junk: bytes) -> None:
    data = tiny_pdf(["Lima is old.", None])
    with suppress(DataError):
        assert pdf_document(data[:place] + junk + data[place + len(junk) :]).text
