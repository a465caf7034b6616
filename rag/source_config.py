"""The sources of a study and how they become passages, as frozen models; part of ``config``."""

from datetime import date
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Frozen(BaseModel):
    """A part of a study: fixed once it is read, without keys that nobody knows."""

    model_config = ConfigDict(extra="forbid", frozen=True)


SourceFormat = Literal["mediawiki", "psgs", "hf-articles", "kilt", "fever", "jsonl", "documents"]


# Keys of a source that one format alone heeds.
_ONLY_FOR: dict[str, SourceFormat] = {
    "until": "mediawiki",
    "dump_job": "mediawiki",
    "previous": "mediawiki",
    "expected_rows": "psgs",
}


class SourceConfig(Frozen):
    """Where pages or passages come from: a MediaWiki dump or one of the other formats."""

    # A file or folder, "package:NAME/FILE", "demo:FILE"; "https://..." of a file, or of a folder with a dump in it (it
    # ends with "/"); "wikimedia:enwiki/20240801" for a dump of the Wikimedia Foundation; "hf:OWNER/NAME/FOLDER" for a
    # data set of the Hugging Face hub.
    path: str
    format: SourceFormat = "mediawiki"
    dump_job: Literal["multistream", "articles"] = "multistream"  # which files of a dump folder
    sha1: str | None = Field(None, pattern="^[0-9a-f]{40}$")  # as published, for a single file
    until: date | None = None  # of a dump with all revisions: each page as it was at the end of this day (UTC)
    expected_rows: int | None = Field(None, ge=1)  # of a psgs file; None: DPR's 21,015,324
    max_passages_per_page: int | None = Field(None, ge=1)  # the rest is counted as left out; None keeps all
    previous: str | None = None  # the source that is an older snapshot of the same wiki: what changed since

    @model_validator(mode="after")
    def _every_key_does_something(self) -> "SourceConfig":
        for key, wanted in _ONLY_FOR.items():
            if getattr(self, key) != type(self).model_fields[key].default and self.format != wanted:
                raise ValueError(f"{key} is for format = {wanted!r} only, and this is {self.format!r}; leave it out")
        if self.sha1 and (self.path.startswith(("wikimedia:", "hf:")) or self.path.endswith("/")):
            raise ValueError(
                f"sha1 is of a single file, and path = {self.path!r} names many, with sums of their own; leave it out"
            )
        return self


class PassageConfig(Frozen):
    """How pages become passages (DPR: disjoint passages of 100 words, without tables, infoboxes and lists)."""

    words: int = Field(100, ge=1, le=32767)
    tail: Literal["short", "wrap"] = "short"  # wrap: the last passage is filled up from the start of the page, as DPR's
    headings: bool = False  # as lines of their own
    tables: bool = False  # a row a line, "header: cell; header: cell"
    infoboxes: bool = False  # a field a line, "name: value"
    captions: bool = False  # of images, as paragraphs
    keep_disambiguation: bool = False
    keep_lists: bool = False  # pages named "List of ...", "Index of ..." and "Outline of ..."
    keep_redirects: bool = False  # as a passage "Redirect to: TARGET"
    exact_duplicates: Literal["keep", "drop"] = "keep"  # the same text on another page; counted in any case
    near_duplicates: Literal["keep", "drop"] = "keep"
    boilerplate: Literal["keep", "drop"] = "keep"  # near duplicates that stand on many pages
    near_duplicate_jaccard: float = Field(0.8, gt=0, le=1)  # of sets of 5 words in a row
    boilerplate_pages: int = Field(10, ge=2)
