"""PDF files of a few objects, written by hand, so that tests need no program that makes them."""

from collections.abc import Sequence


def tiny_pdf(pages: Sequence[str | None], title: str = "") -> bytes:
    """A PDF with these pages: lines of text, or None for a page that shows only an image."""
    first = 4
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{' '.join(f'{first + 2 * n} 0 R' for n in range(len(pages)))}] >>",
        f"<< /Title ({title}) >>",
    ]
    for number, text in enumerate(pages):
        content = f"{first + 2 * number + 1} 0 R"
        resources = "/Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"
        if text is None:
            resources = f"/XObject << /I {first + 2 * len(pages)} 0 R >>"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << {resources} >> /Contents {content} >>"
        )
        objects.append(_stream("", "/I Do" if text is None else _shown(text)))
    objects.append(
        _stream("/Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 ", "x")
    )
    return _file(objects)


def _shown(text: str) -> str:
    lines = "".join(f"({line}) Tj 0 -14 Td " for line in text.split("\n"))
    return f"BT /F 12 Tf 72 700 Td {lines}ET"


def _stream(entries: str, data: str) -> str:
    return f"<< {entries}/Length {len(data)} >>\nstream\n{data}\nendstream"


def _file(objects: Sequence[str]) -> bytes:
    data, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(data))
        data += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    trailer = f"trailer\n<< /Size {size} /Root 1 0 R /Info 3 0 R >>\nstartxref\n{len(data)}\n%%EOF\n"
    return f"{data}xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode("latin-1")
