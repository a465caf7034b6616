import pytest
import torch

from rag.errors import DataError
from rag.modeling.inputs import GeneratorInputs
from rag.modeling.models import Family, RagModel
from tests.support import oracle
from tests.support.tiny_models import hf_dpr_question_encoder, random_ids, tiny_generator

SCORES = [[1.0, -0.5, 2.0], [0.3, 0.0, 9.0]]
FOUND = [[True, True, True], [True, True, False]]


@pytest.fixture(scope="module", params=["flan-t5", "bart"])
def model(request, tmp_path_factory) -> RagModel:
    generator = tiny_generator(request.param, tmp_path_factory.mktemp(request.param), seed=2)
    return RagModel("rag-sequence", generator).double()


def batch(n_docs: int = 3) -> tuple[GeneratorInputs, torch.Tensor, torch.Tensor]:
    ids, mask = random_ids(2 * n_docs, seed=1)
    targets, target_mask = random_ids(2, seed=2, length=4)
    return GeneratorInputs(ids.view(2, n_docs, -1), mask.view(2, n_docs, -1)), targets, target_mask


@pytest.mark.parametrize(("family", "naive"), [("rag-sequence", oracle.sequence), ("rag-token", oracle.token)])
def test_loss_and_its_gradient_in_doc_scores_equal_the_oracle(family: Family, naive, model: RagModel) -> None:
    model.family = family
    inputs, targets, mask = batch()
    scores = torch.tensor(SCORES, dtype=torch.float64, requires_grad=True)
    output = model.loss(inputs, scores, targets, mask, torch.tensor(FOUND))
    output.per_example.sum().backward()
    tokens = model.token_logprobs(inputs, targets, mask).tolist()
    assert scores.grad is not None
    for number in range(2):

        def loss(at: list[float], number: int = number) -> float:
            return -naive(tokens[number], oracle.prior(at, FOUND[number]), mask[number].tolist())

        assert output.per_example[number].item() == pytest.approx(loss(SCORES[number]), abs=1e-6)
        assert scores.grad[number].tolist() == pytest.approx(oracle.gradient(loss, SCORES[number]), abs=1e-6)
    if family == "rag-sequence":
        slope = output.prior_logprobs.exp() - output.posterior_logprobs.exp()
        torch.testing.assert_close(scores.grad, slope, rtol=0, atol=1e-9)
    assert output.per_token.item() == pytest.approx(output.per_example.sum().item() / mask.sum().item())


def test_loss_of_an_example_does_not_depend_on_its_batch(model: RagModel) -> None:
    model.family = "rag-token"
    inputs, targets, mask = batch()
    scores = torch.tensor(SCORES, dtype=torch.float64)
    together = model.loss(inputs, scores, targets, mask).per_example
    for number in range(2):
        one = slice(number, number + 1)
        alone = GeneratorInputs(inputs.input_ids[one], inputs.attention_mask[one])
        torch.testing.assert_close(model.loss(alone, scores[one], targets[one], mask[one]).per_example, together[one])


def test_closed_book_is_the_plain_generator(model: RagModel) -> None:
    model.family = "closed-book"
    inputs, targets, mask = batch(n_docs=1)
    output = model.loss(inputs, torch.zeros(2, 1).double(), targets, mask)
    plain = -model.token_logprobs(inputs, targets, mask)[:, 0].sum(dim=1)
    torch.testing.assert_close(output.per_example, plain)
    assert output.posterior_logprobs.tolist() == [[0.0], [0.0]]


def test_a_masked_passage_gives_the_generator_no_gradient(model: RagModel) -> None:
    model.family = "rag-token"
    inputs, targets, mask = batch()
    scores = torch.tensor(SCORES, dtype=torch.float64)
    gradients = []
    for replaced in (inputs.input_ids, inputs.input_ids.index_fill(1, torch.tensor([2]), 5)):
        model.zero_grad()
        found = torch.tensor([[True, True, False]] * 2)
        model.loss(inputs._replace(input_ids=replaced), scores, targets, mask, found).per_example.sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-12)


def test_a_question_without_passages_is_refused(model: RagModel) -> None:
    inputs, targets, mask = batch()
    with pytest.raises(DataError, match="no passage"):
        model.loss(inputs, torch.zeros(2, 3), targets, mask, torch.tensor([[True] * 3, [False] * 3]))


def test_the_question_encoder_is_trained_and_saved_with_the_model(model: RagModel) -> None:
    whole = RagModel("rag-token", model.generator, hf_dpr_question_encoder())
    assert any(name.startswith("question_encoder.") for name in whole.state_dict())
    assert not whole.training
    assert not any(module.training for module in whole.modules())
