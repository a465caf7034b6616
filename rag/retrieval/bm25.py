"""BM25 as a retriever: its scores are the logits of p(z|x), and nothing of it is trained.

So it is in the ablation of the paper (Lewis et al. 2020, section 4.5, the BM25 rows of table 6).
"""

from collections.abc import Sequence

from rag.config import Bm25Config
from rag.retrieval.bm25_index import Bm25Index
from rag.retrieval.results import PassageRows
from rag.retrieval.retriever import Retrieved, require_equal_counts, with_passages


class Bm25Retriever:
    """A BM25 index with the passages it was built from; doc_scores are BM25 times ``score_scale``.

    Raises IndexMismatchError where their counts differ.
    """

    def __init__(self, index: Bm25Index, passages: PassageRows, score_scale: float = Bm25Config().score_scale) -> None:
        require_equal_counts(bm25=index.ntotal, passages=len(passages))
        self.index = index
        self._passages = passages
        self._score_scale = score_scale

    def retrieve(self, questions: Sequence[str], n_docs: int) -> Retrieved:
        """The n_docs passages with the largest BM25 score; none for a question without a word that a passage has."""
        found = self.index.search(questions, n_docs)
        return with_passages(found._replace(scores=found.scores * self._score_scale), self._passages)

    def finds(self, questions: Sequence[str]) -> list[bool]:
        """Whether ``retrieve`` has any passage for a question; much quicker."""
        return self.index.finds(questions)
