import pytest
import torch

from rag.errors import DataError
from rag.modeling.marginalize import (
    marginalize_sequence,
    marginalize_token,
    posterior_logprobs,
    prior_logprobs,
    token_posterior_logprobs,
)

FAMILIES = [marginalize_sequence, marginalize_token]


def test_a_masked_passage_has_prior_zero_whatever_its_score() -> None:
    mask = torch.tensor([[True, True, False]])
    for score in (5.0, float("inf"), float("nan")):
        prior = prior_logprobs(torch.tensor([[1.0, 1.0, score]]), mask).exp()
        assert prior.tolist() == [[0.5, 0.5, 0.0]]


def test_a_question_without_any_passage_is_refused_by_its_row() -> None:
    with pytest.raises(DataError, match=r"rows \[1\] of the batch have no passage"):
        prior_logprobs(torch.zeros(2, 2), torch.tensor([[True, False], [False, False]]))
    with pytest.raises(DataError, match="no passage"):
        prior_logprobs(torch.zeros(1, 0))


@pytest.mark.parametrize("marginalize", FAMILIES)
def test_an_empty_target_has_loglikelihood_zero_and_the_prior_as_posterior(marginalize) -> None:
    prior = prior_logprobs(torch.tensor([[3.0, -1.0]]))
    mask = torch.tensor([[False, False]])
    tokens = torch.full((1, 2, 2), float("nan"))
    assert marginalize(tokens, prior, mask).item() == pytest.approx(0.0, abs=1e-6)
    torch.testing.assert_close(posterior_logprobs(tokens, prior, mask), prior)


@pytest.mark.parametrize("marginalize", FAMILIES)
def test_the_prior_applies_to_a_target_of_one_token(marginalize) -> None:
    """A known loss elsewhere is the same for doc_scores (9,-9) and (-9,9) when the target is only </s>."""
    tokens, mask = torch.tensor([[[0.9], [0.1]]]).log(), torch.tensor([[True]])
    trusting_first = marginalize(tokens, prior_logprobs(torch.tensor([[9.0, -9.0]])), mask).exp()
    trusting_second = marginalize(tokens, prior_logprobs(torch.tensor([[-9.0, 9.0]])), mask).exp()
    assert trusting_first.item() == pytest.approx(0.9, abs=1e-4)
    assert trusting_second.item() == pytest.approx(0.1, abs=1e-4)


@pytest.mark.parametrize("marginalize", FAMILIES)
def test_gradients_stay_finite_behind_masks_and_padding(marginalize) -> None:
    scores = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    tokens = torch.tensor([[[-1.0, float("-inf")], [-2.0, float("nan")], [float("nan"), -1.0]]], requires_grad=True)
    prior = prior_logprobs(scores, torch.tensor([[True, True, False]]))
    marginalize(tokens, prior, torch.tensor([[True, False]])).sum().backward()
    assert scores.grad is not None
    assert tokens.grad is not None
    assert torch.isfinite(scores.grad).all()
    assert torch.isfinite(tokens.grad).all()
    assert scores.grad[0, 2] == 0
    assert tokens.grad[0, 2].eq(0).all()
    assert tokens.grad[0, :, 1].eq(0).all()


def test_passages_that_explain_equally_well_teach_the_retriever_nothing() -> None:
    scores = torch.tensor([[1.0, 2.0]], requires_grad=True)
    tokens = torch.tensor([[[-1.0, -0.5], [-0.5, -1.0]]])
    marginalize_sequence(tokens, prior_logprobs(scores), torch.tensor([[True, True]])).sum().backward()
    torch.testing.assert_close(scores.grad, torch.zeros(1, 2))


@pytest.mark.parametrize("marginalize", FAMILIES)
def test_half_precision_is_computed_in_float32(marginalize) -> None:
    tokens = torch.randn(2, 3, 40).mul(4).sub(8).bfloat16()
    scores, mask = torch.randn(2, 3).bfloat16(), torch.ones(2, 40, dtype=torch.bool)
    result = marginalize(tokens, prior_logprobs(scores), mask)
    exact = marginalize(tokens.double(), prior_logprobs(scores.double()), mask)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result.double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("marginalize", FAMILIES)
def test_extreme_scores_stay_exact_in_float32(marginalize) -> None:
    tokens = torch.full((1, 2, 300), -60.0)
    result = marginalize(tokens, prior_logprobs(torch.tensor([[2e4, -2e4]])), torch.ones(1, 300, dtype=torch.bool))
    assert result.item() == pytest.approx(-18000.0)


def test_token_posterior_follows_each_token_and_is_the_prior_at_padding() -> None:
    tokens = torch.tensor([[[0.8, 0.1, 0.5], [0.2, 0.9, 0.5]]]).log()
    prior = torch.tensor([[0.25, 0.75]]).log()
    posterior = token_posterior_logprobs(tokens, prior, torch.tensor([[True, True, False]])).exp()
    torch.testing.assert_close(posterior[0, :, 0], torch.tensor([0.2 / 0.35, 0.15 / 0.35]))
    torch.testing.assert_close(posterior[0, :, 2], torch.tensor([0.25, 0.75]))
    torch.testing.assert_close(posterior.sum(dim=1), torch.ones(1, 3))
