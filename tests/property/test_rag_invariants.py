"""Every invariant of the equations, on random small cases, against the plain loops of ``tests.support.oracle``."""

from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rag.modeling.marginalize import (
    marginalize_sequence,
    marginalize_token,
    posterior_logprobs,
    prior_logprobs,
    token_posterior_logprobs,
)
from tests.support import oracle

FAMILIES = [(marginalize_sequence, oracle.sequence), (marginalize_token, oracle.token)]
quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)


class Case(NamedTuple):
    """A random batch in float64; at least one passage a question, any number of scored tokens."""

    tokens: Tensor
    scores: Tensor
    doc_mask: Tensor
    target_mask: Tensor

    @property
    def prior(self) -> Tensor:
        return prior_logprobs(self.scores, self.doc_mask)


@st.composite
def cases(draw, max_docs: int = 4, min_len: int = 0, max_len: int = 5) -> Case:
    batch, n_docs = draw(st.integers(1, 3)), draw(st.integers(1, max_docs))
    length = draw(st.integers(min_len, max_len))
    random = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    tokens = -torch.rand(batch, n_docs, length, generator=random, dtype=torch.float64) * draw(st.sampled_from([1, 9]))
    scores = torch.randn(batch, n_docs, generator=random, dtype=torch.float64) * draw(st.sampled_from([0, 1, 20]))
    doc_mask = torch.rand(batch, n_docs, generator=random) < 0.7
    doc_mask[torch.arange(batch), torch.randint(n_docs, (batch,), generator=random)] = True
    lengths = torch.randint(0, length + 1, (batch,), generator=random)
    target_mask = torch.arange(length)[None, :] < lengths[:, None]
    return Case(tokens, scores, doc_mask, target_mask)


def by_question(case: Case):
    """Each question's part of the batch as plain lists."""
    return zip(*(part.tolist() for part in case), strict=True)


@pytest.mark.parametrize(("marginalize", "naive"), FAMILIES)
@quick
@given(case=cases())
def test_loglikelihood_equals_the_oracle(marginalize, naive, case: Case) -> None:
    expected = [naive(tokens, oracle.prior(scores, found), mask) for tokens, scores, found, mask in by_question(case)]
    torch.testing.assert_close(
        marginalize(case.tokens, case.prior, case.target_mask), torch.tensor(expected, dtype=torch.float64),
        rtol=1e-9, atol=1e-9,
    )  # fmt: skip


@pytest.mark.parametrize(("marginalize", "naive"), FAMILIES)
@settings(quick, max_examples=15)
@given(case=cases(max_docs=3, max_len=3))
def test_gradients_equal_differences_of_the_oracle(marginalize, naive, case: Case) -> None:
    tokens, scores = case.tokens.clone().requires_grad_(), case.scores.clone().requires_grad_()
    marginalize(tokens, prior_logprobs(scores, case.doc_mask), case.target_mask).sum().backward()
    for number, (token_rows, score_row, found, mask) in enumerate(by_question(case)):
        by_score = oracle.gradient(lambda at: naive(token_rows, oracle.prior(at, found), mask), score_row)  # noqa: B023
        torch.testing.assert_close(scores.grad[number], torch.tensor(by_score).double(), rtol=1e-6, atol=1e-6)
        flat, width = [value for row in token_rows for value in row], len(mask)

        def at_tokens(at, width=width, score_row=score_row, found=found, mask=mask):
            rows = [at[first : first + width] for first in range(0, len(at), width)] or [[]] * len(score_row)
            return naive(rows, oracle.prior(score_row, found), mask)

        by_token = torch.tensor(oracle.gradient(at_tokens, flat)).double().view(len(score_row), width)
        torch.testing.assert_close(tokens.grad[number], by_token, rtol=1e-6, atol=1e-6)


@quick
@given(case=cases())
def test_gradient_of_the_sequence_loss_is_prior_minus_posterior(case: Case) -> None:
    scores = case.scores.clone().requires_grad_()
    prior = prior_logprobs(scores, case.doc_mask)
    (-marginalize_sequence(case.tokens, prior, case.target_mask)).sum().backward()
    posterior = posterior_logprobs(case.tokens, prior.detach(), case.target_mask)
    torch.testing.assert_close(scores.grad, prior.detach().exp() - posterior.exp(), rtol=1e-9, atol=1e-9)


@quick
@given(case=cases(max_docs=1))
def test_one_passage_makes_both_families_the_plain_generator(case: Case) -> None:
    plain = torch.where(case.target_mask, case.tokens[:, 0], 0).sum(dim=1)
    for marginalize, _ in FAMILIES:
        torch.testing.assert_close(marginalize(case.tokens, case.prior, case.target_mask), plain)


@quick
@given(case=cases(min_len=1, max_len=1))
def test_one_scored_token_makes_the_families_equal(case: Case) -> None:
    arguments = case.tokens, case.prior, case.target_mask
    torch.testing.assert_close(marginalize_sequence(*arguments), marginalize_token(*arguments), rtol=0, atol=1e-9)


@pytest.mark.parametrize("marginalize", [marginalize_sequence, marginalize_token])
@quick
@given(case=cases(), shift=st.floats(-50, 50))
def test_order_of_passages_and_a_constant_on_the_scores_change_nothing(marginalize, case: Case, shift: float) -> None:
    expected = marginalize(case.tokens, case.prior, case.target_mask)
    turned = prior_logprobs(case.scores.flip(1) + shift, case.doc_mask.flip(1))
    torch.testing.assert_close(marginalize(case.tokens.flip(1), turned, case.target_mask), expected)


@quick
@given(case=cases())
def test_posteriors_equal_the_oracle_and_sum_to_one(case: Case) -> None:
    posterior = posterior_logprobs(case.tokens, case.prior, case.target_mask)
    expected = [
        oracle.posterior(tokens, oracle.prior(scores, found), mask) for tokens, scores, found, mask in by_question(case)
    ]
    torch.testing.assert_close(posterior.exp(), torch.tensor(expected).double().exp(), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(posterior.exp().sum(dim=1), torch.ones(len(posterior), dtype=torch.float64))
    by_token = token_posterior_logprobs(case.tokens, case.prior, case.target_mask).exp().sum(dim=1)
    torch.testing.assert_close(by_token, torch.ones_like(by_token))


@pytest.mark.parametrize("marginalize", [marginalize_sequence, marginalize_token])
@quick
@given(case=cases(), padding=st.integers(1, 3))
def test_padding_and_masked_passages_change_nothing(marginalize, case: Case, padding: int) -> None:
    expected = marginalize(case.tokens, case.prior, case.target_mask)
    batch, n_docs, _ = case.tokens.shape
    longer = torch.cat([case.tokens, torch.full((batch, n_docs, padding), torch.nan)], dim=2)
    mask = torch.cat([case.target_mask, torch.zeros(batch, padding, dtype=torch.bool)], dim=1)
    more = torch.cat([longer, torch.full((batch, 1, longer.shape[2]), 7.0)], dim=1)
    prior = prior_logprobs(
        torch.cat([case.scores, torch.full((batch, 1), 99.0)], dim=1),
        torch.cat([case.doc_mask, torch.zeros(batch, 1, dtype=torch.bool)], dim=1),
    )
    torch.testing.assert_close(marginalize(more, prior, mask), expected)
    first = marginalize(case.tokens[:1], case.prior[:1], case.target_mask[:1])
    torch.testing.assert_close(first, expected[:1])


@pytest.mark.parametrize("marginalize", [marginalize_sequence, marginalize_token])
@quick
@given(case=cases())
def test_float32_is_within_1e_5_of_float64(marginalize, case: Case) -> None:
    single = marginalize(case.tokens.float(), prior_logprobs(case.scores.float(), case.doc_mask), case.target_mask)
    exact = marginalize(case.tokens, case.prior, case.target_mask)
    torch.testing.assert_close(single.double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("marginalize", [marginalize_sequence, marginalize_token])
@settings(quick, max_examples=10)
@given(seed=st.integers(0, 2**31))
def test_probabilities_of_all_strings_of_one_length_sum_to_one(marginalize, seed: int) -> None:
    """Over a vocabulary of three, with next-token probabilities that depend on the passage and the prefix."""
    random = torch.Generator().manual_seed(seed)
    step = [torch.randn(2, 3**t, 3, generator=random, dtype=torch.float64).log_softmax(dim=-1) for t in range(3)]
    strings = torch.cartesian_prod(*[torch.arange(3)] * 3)
    prefix = [torch.zeros(27, dtype=torch.long), strings[:, 0], strings[:, 0] * 3 + strings[:, 1]]
    tokens = torch.stack([step[t][:, prefix[t], strings[:, t]] for t in range(3)], dim=2).transpose(0, 1)
    prior = torch.randn(1, 2, generator=random, dtype=torch.float64).log_softmax(dim=1).expand(27, 2)
    total = marginalize(tokens, prior, torch.ones(27, 3, dtype=torch.bool)).exp().sum()
    assert total.item() == pytest.approx(1.0, abs=1e-9)
