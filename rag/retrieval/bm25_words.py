"""The words of passages and questions as BM25 counts them."""

import unicodedata

import tantivy


def analyzer(stemming: bool, stopwords: bool) -> tantivy.TextAnalyzer:
    """Runs of letters and digits, lower case, without accents; English stopwords left out, English stems.

    It reads what ``prepare`` gives. Lucene's 33 English stopwords; Snowball's English stemmer.
    """
    filters = [tantivy.Filter.lowercase(), tantivy.Filter.ascii_fold()]
    filters += [tantivy.Filter.stopword("english")] if stopwords else []
    filters += [tantivy.Filter.stemmer("english")] if stemming else []
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for one in filters:
        builder = builder.filter(one)
    return builder.build()


def prepare(text: str) -> str:
    """The text in Unicode NFC: an accent that stands apart from its letter would end a word."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def words_of(text: str, by: tantivy.TextAnalyzer) -> list[str]:
    """The words of a text, in their order.

    >>> words_of("Zoe\u0308's rivers are in the south", analyzer(stemming=True, stopwords=True))
    ['zoe', 's', 'river', 'south']
    """
    return by.analyze(prepare(text))
