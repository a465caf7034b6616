"""A whole study in miniature, in the real formats: two dumps, four tasks, an index swap, random tiny models."""

import json
from pathlib import Path
from xml.sax.saxutils import escape

from tests.support.tiny_encoders import write_bert
from tests.support.tiny_models import hf_t5, t5_tokenizer, write_model

HOLDERS = {"2016": "lima", "2018": "paris"}
COUNTRIES = ("peru", "france", "chile", "spain")

_STUDY = """
name = "tiny"
title = "A study in miniature"
seed = 3

[sources.wiki-2016]
path = "2016.xml"

[sources.wiki-2018]
path = "2018.xml"

[corpora]
2016 = ["wiki-2016"]
2018 = ["wiki-2018"]

[encoder]
path = "encoder"
pooling = "mean"
normalize = true
max_question_tokens = 24
max_passage_tokens = 48
score_scale = 10.0

[generator]
path = "generator"
layout = "{question} / {title} / {text}"
max_source_tokens = 48

[index]
m = 4
min_recall = 0.5

[tasks.qa]
reader = "open-qa"
train = "qa-train.jsonl"
test = "qa-test.jsonl"
max_new_tokens = 4

[tasks.fever]
reader = "fever"
train = "fever-train.jsonl"
test = "fever-test.jsonl"
labels = { SUPPORTS = "a", REFUTES = "b", "NOT ENOUGH INFO" = "c" }

[models.rag-token]
family = "rag-token"
corpus = "2018"
tasks = { qa = 1, fever = 1 }
n_docs = 2
steps = 6
batch_size = 2
checkpoint_every = 2

[models.rag-sequence]
family = "rag-sequence"
corpus = "2018"
tasks = { qa = 1, fever = 1 }
n_docs = 2
steps = 2
batch_size = 2
init_from = "rag-token"

[models.closed-book]
family = "closed-book"
tasks = { qa = 1, fever = 1 }
steps = 2
batch_size = 2

[expected]
"rag-token/qa/exact_match" = { value = 0.0, tolerance = 0.5, source = "a guess" }
"rag-token/qa/no_such_metric" = { value = 0.0, tolerance = 0.5, source = "a guess" }

[swap]
model = "rag-token"
facts = "offices.csv"
template = "who is the {position}"
before_corpus = "2016"
before_date = 2016-12-20
after_corpus = "2018"
after_date = 2018-12-20
"""


def write_tiny_study(folder: Path) -> Path:
    """Write all of it below ``folder``; returns the study file."""
    folder.mkdir(parents=True, exist_ok=True)
    for year, holder in HOLDERS.items():
        (folder / f"{year}.xml").write_text(_dump(holder), encoding="utf-8")
    write_bert(folder / "encoder")
    write_model(hf_t5(seed=1), t5_tokenizer(), folder / "generator")
    for split, countries in {"train": COUNTRIES[:2], "test": COUNTRIES[2:]}.items():
        questions = [{"question": f"what is the capital of {one}", "answer": [one]} for one in countries]
        _write_lines(folder / f"qa-{split}.jsonl", questions)
        claims = [
            {"id": number, "claim": f"the king of {one} is {label}", "label": label, "evidence": []}
            for number, (one, label) in enumerate(
                (one, label) for one in countries for label in ("SUPPORTS", "REFUTES")
            )
        ]
        _write_lines(folder / f"fever-{split}.jsonl", claims)
    tenures = [
        f"king of {one},{one},{holder},,{since},{until}"
        for one in COUNTRIES
        for holder, since, until in ((HOLDERS["2016"], "2010-01-01", "2017-01-01"), (HOLDERS["2018"], "2017-01-01", ""))
    ]
    (folder / "offices.csv").write_text(
        "\n".join(["position,country,holder,aliases,since,until", *tenures]) + "\n", encoding="utf-8"
    )
    study = folder / "tiny.toml"
    study.write_text(_STUDY, encoding="utf-8")
    return study


def _dump(holder: str) -> str:
    pages = []
    for number, country in enumerate(COUNTRIES, start=1):
        for offset, (title, text) in enumerate(
            (
                (country, f"'''{country}''' is a [[country]]. the capital of {country} is the {country}."),
                (f"king of {country}", f"the king of {country} is {holder}."),
            )
        ):
            pages.append(_page(10 * number + offset, title, text))
    head = '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">'
    return "\n".join([head, *pages, "</mediawiki>"]) + "\n"


def _page(page_id: int, title: str, text: str) -> str:
    return (
        f"<page><title>{escape(title)}</title><ns>0</ns><id>{page_id}</id><revision><id>{page_id + 1000}</id>"
        f"<timestamp>2016-01-01T00:00:00Z</timestamp><model>wikitext</model><format>text/x-wiki</format>"
        f'<text xml:space="preserve">{escape(text)}</text></revision></page>'
    )


def _write_lines(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
