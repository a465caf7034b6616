"""Checkpoints in Hugging Face's RAG format: read, written, and what is refused of them."""

import json
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoTokenizer, RagTokenizer

from rag.errors import CheckpointError, ResourceError
from rag.modeling.models import Family, RagModel
from rag.training.checkpoint import Checkpoint, ModelCard, load_checkpoint, save_checkpoint
from rag.training.hf_checkpoint import import_rag
from rag.training.hf_export import export_rag
from tests.support.tiny_hf_rag import CLASSES, DIM, Batch, write_hf_rag

KINDS = ["bart", "t5", "flan-t5"]
FAMILIES: list[Family] = ["rag-sequence", "rag-token"]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A RAG-Sequence checkpoint as transformers saves it."""
    folder = tmp_path_factory.mktemp("theirs") / "rag"
    write_hf_rag(folder)
    return folder


@pytest.fixture(scope="module")
def ours(theirs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as one of ours."""
    folder = tmp_path_factory.mktemp("ours")
    import_rag(theirs, folder, "rag-sequence", "facebook/rag-sequence-nq")
    return folder


def loaded(folder: Path, family: Family = "rag-sequence") -> tuple[Checkpoint, RagModel, Any]:
    checkpoint = load_checkpoint(folder, family, "dense")
    assert checkpoint.encoder is not None
    return checkpoint, checkpoint.model, checkpoint.encoder


def head_is_embedding(model: Any) -> bool:
    """By where the numbers lie, for equal copies drift apart in training."""
    same: bool = model.get_output_embeddings().weight.data_ptr() == model.get_input_embeddings().weight.data_ptr()
    return same


@pytest.mark.parametrize("kind", [*KINDS, "mbart-50"])
@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_losses_are_equal_on_the_way_in_and_out_and_in_again(kind: str, family: Family, tmp_path: Path) -> None:
    model = write_hf_rag(tmp_path / "theirs", family, kind)
    import_rag(tmp_path / "theirs", tmp_path / "ours", family)
    _, own, encoder = loaded(tmp_path / "ours", family)
    batch = Batch(own, encoder)
    loss = batch.their_loss(model)
    exported = export_rag(tmp_path / "ours", tmp_path / "exported")
    again, report = CLASSES[family].from_pretrained(tmp_path / "exported", output_loading_info=True)
    import_rag(tmp_path / "exported", tmp_path / "ours-again", family)
    _, own_again, encoder_again = loaded(tmp_path / "ours-again", family)
    for other in (
        batch.our_loss(own, encoder),
        batch.their_loss(again.eval()),
        Batch(own_again, encoder_again).our_loss(own_again, encoder_again),
    ):
        torch.testing.assert_close(other, loss, rtol=1e-5, atol=1e-5)
    assert (exported.class_name, exported.tensors) == (type(model).__name__, len(own.state_dict()) - _aliases(own))
    assert not any(report[problem] for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    firsts = [(5,) if kind == "mbart-50" else (0,) if kind == "bart" else ()] * 2  # the code of the target's language
    assert [one.generator.first_token_ids for one in (own, own_again)] == firsts
    heads = [head_is_embedding(one) for one in (model.generator, own.generator.model, again.generator)]
    assert heads == [kind != "flan-t5"] * 3


def _aliases(model: RagModel) -> int:
    """Names beyond the first of tensors that have several."""
    pointers = [tensor.data_ptr() for tensor in model.state_dict().values()]
    return len(pointers) - len(set(pointers))


@torch.no_grad()
def test_a_reloaded_model_whose_head_was_saved_alone_is_still_tied(theirs: Path, tmp_path: Path) -> None:
    """Versions of transformers that lost the tie wrote the shared tensor under its other name."""
    folder = copied(theirs, tmp_path / "theirs")
    weights = load_file(folder / "model.safetensors")
    weights["rag.generator.lm_head.weight"] = weights.pop("rag.generator.model.shared.weight")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    import_rag(folder, tmp_path / "ours", "rag-sequence")
    _, model, encoder = loaded(tmp_path / "ours")
    import_rag(theirs, tmp_path / "whole", "rag-sequence")
    _, whole, _ = loaded(tmp_path / "whole")
    batch = Batch(model, encoder)
    assert head_is_embedding(model.generator.model)
    torch.testing.assert_close(batch.our_loss(model, encoder), batch.our_loss(whole, encoder), rtol=0, atol=0)


def test_sharded_weights_are_read_as_one_file_is(ours: Path, tmp_path: Path) -> None:
    write_hf_rag(tmp_path / "sharded", max_shard_size="10KB")
    assert len(list((tmp_path / "sharded").glob("model-*.safetensors"))) > 2
    import_rag(tmp_path / "sharded", tmp_path / "ours", "rag-sequence")
    _, model, _ = loaded(tmp_path / "ours")
    _, other, _ = loaded(ours)
    assert all(torch.equal(tensor, other.state_dict()[name]) for name, tensor in model.state_dict().items())


def test_settings_are_carried_both_ways(tmp_path: Path) -> None:
    options = {"n_docs": 7, "title_sep": " | ", "doc_sep": " >> ", "max_combined_length": 77, "exclude_bos_score": True}
    model = write_hf_rag(tmp_path / "theirs", **options)
    config = json.loads((tmp_path / "theirs" / "config.json").read_text())
    config["generator"]["prefix"] = "answer: "
    (tmp_path / "theirs" / "config.json").write_text(json.dumps(config))
    card, notes = import_rag(tmp_path / "theirs", tmp_path / "ours", "rag-sequence", "facebook/rag-sequence-nq")
    assert (card.layout, card.max_source_tokens, card.n_docs) == ("answer: {title} | {text} >> {question}", 77, 7)
    assert [word for note in notes for word in ("lower case", "exclude_bos_score") if word in note] == [
        "lower case",
        "exclude_bos_score",
    ]
    assert card.encoder is not None
    assert (card.encoder.path, card.passage_fingerprint, card.row_ids_sha256) == (
        "facebook/rag-sequence-nq",
        None,
        None,
    )
    assert load_checkpoint(tmp_path / "ours", "rag-sequence", "dense", "c" * 64, "d" * 64).caveat == (
        "whether the model was trained with the vectors of the context encoder it answers from is not recorded; "
        "whether the model was trained with the passages it answers from is not recorded"
    )
    export_rag(tmp_path / "ours", tmp_path / "exported")
    found = type(model).from_pretrained(tmp_path / "exported").config
    assert {name: getattr(found, name) for name in options if name != "exclude_bos_score"} == {
        name: value for name, value in options.items() if name != "exclude_bos_score"
    }
    assert (found.generator.prefix, found.retrieval_vector_size, found.index_name) == ("answer: ", DIM, "custom")


def test_what_an_export_was_trained_with_comes_back(ours: Path, tmp_path: Path) -> None:
    checkpoint, model, encoder = loaded(ours)
    known = {"passage_fingerprint": "c" * 64, "row_ids_sha256": "d" * 64, "trained_steps": 9}
    save_checkpoint(tmp_path / "ours", model, encoder, checkpoint.card.model_copy(update=known))
    export_rag(tmp_path / "ours", tmp_path / "exported")
    card = import_rag(tmp_path / "exported", tmp_path / "again", "rag-sequence", "elsewhere").card
    assert card.model_dump(include=set(known)) == known
    assert card.encoder is not None
    assert card.encoder.path == "facebook/rag-sequence-nq"


def test_transformers_reads_both_tokenizers_of_an_export(ours: Path, tmp_path: Path) -> None:
    export_rag(ours, tmp_path / "exported")
    tokenizer = RagTokenizer.from_pretrained(tmp_path / "exported")
    _, model, encoder = loaded(ours)
    text = "who is paris"
    assert tokenizer.generator(text)["input_ids"] == list(model.generator.tokenizer.encode([text])[0].ids)
    assert (tokenizer.generator.pad_token, tokenizer.generator.eos_token) == ("<pad>", "</s>")
    assert tokenizer.question_encoder(text)["input_ids"] == encoder.tokenize_questions([text])["input_ids"][0].tolist()


@torch.no_grad()
def test_transformers_generates_with_an_export(theirs: Path, ours: Path, tmp_path: Path) -> None:
    export_rag(ours, tmp_path / "exported")
    _, model, encoder = loaded(ours)
    batch = Batch(model, encoder)
    ids, scores = batch.inputs.input_ids[0], torch.tensor([[0.5, 0.2, 0.1]])
    found = [
        CLASSES["rag-sequence"].from_pretrained(folder).generate(
            context_input_ids=ids, context_attention_mask=torch.ones_like(ids), doc_scores=scores, max_length=6
        )
        for folder in (theirs, tmp_path / "exported")
    ]  # fmt: skip
    assert found[0].tolist() == found[1].tolist()
    assert found[0].shape[1] > 1


def test_the_older_tokenizer_files_are_read(theirs: Path, tmp_path: Path) -> None:
    """The public checkpoints hold vocab.json with merges.txt and vocab.txt, and no tokenizer.json."""
    folder = copied(theirs, tmp_path / "theirs")
    generator, encoder = folder / "generator_tokenizer", folder / "question_encoder_tokenizer"
    for path in (*generator.iterdir(), *encoder.iterdir()):
        path.unlink()
    letters = ["<s>", "<pad>", "</s>", "<unk>", *"abcdefgik", "\u0120", "\u0120a"]
    (generator / "vocab.json").write_text(json.dumps({piece: number for number, piece in enumerate(letters)}))
    (generator / "merges.txt").write_text("#version: 0.2\n\u0120 a\n", encoding="utf-8")
    (encoder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "who", "##m"]) + "\n")
    (encoder / "tokenizer_config.json").write_text('{"do_lower_case": true, "model_max_length": 512}')
    import_rag(folder, tmp_path / "ours", "rag-sequence")
    _, model, own = loaded(tmp_path / "ours")
    asked = model.generator.tokenizer.encode(["bad a"])[0]
    assert [letters[token] for token in asked.ids] == ["<s>", "b", "a", "d", "\u0120a", "</s>"]
    assert own.tokenize_questions(["Whom"])["input_ids"].tolist() == [[2, 5, 6, 3]]
    export_rag(tmp_path / "ours", tmp_path / "exported")
    again = AutoTokenizer.from_pretrained(tmp_path / "exported" / "generator_tokenizer")
    assert again("bad a")["input_ids"] == list(asked.ids)


def copied(source: Path, folder: Path) -> Path:
    import shutil

    shutil.copytree(source, folder)
    return folder


def _pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def _without_generator_tokenizer(folder: Path) -> None:
    (folder / "generator_tokenizer" / "tokenizer.json").unlink()


def _without_question_tokenizer(folder: Path) -> None:
    for path in (folder / "question_encoder_tokenizer").iterdir():
        path.unlink()


def _wordless(folder: Path) -> None:
    _without_question_tokenizer(folder)
    (folder / "question_encoder_tokenizer" / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n")


def _with_more_words(part: str) -> Any:
    def change(folder: Path) -> None:
        path = folder / part / "tokenizer.json"
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.add_tokens([f"word{number}" for number in range(20)])
        tokenizer.save(str(path))

    return change


def _not_numbers(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights[_NORM][0] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _config_of(part: str, **changes: Any) -> Any:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        config = json.loads(path.read_bytes())
        path.write_text(json.dumps({**config, part: {**config[part], **changes}}))

    return change


def _config(**changes: Any) -> Any:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_bytes()), **changes}))

    return change


def _weights(rename: dict[str, str]) -> Any:
    def change(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        for old, new in rename.items():
            tensor = weights.pop(old)
            if new:
                weights[new] = tensor
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

    return change


_NORM = "rag.generator.model.decoder.layernorm_embedding.bias"
_POSITIONS = "rag.question_encoder.question_encoder.bert_model.embeddings.position_embeddings.weight"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            _config(architectures=["RagTokenForGeneration"]),
            "is a rag-token model (RagTokenForGeneration) and was asked",
        ),
        (_config(architectures=["RagModel"]), "says that it is a RagModel"),
        (_config(architectures=None), "says that it is a (none)"),
        (_config(model_type="bart"), "holds a bart model, no RAG checkpoint"),
        (_config(n_docs="five"), "config.json is damaged"),
        (_config(openbook="ours"), "config.json is damaged"),
        (_config(generator=None), "has no generator"),
        (_config(question_encoder={"model_type": "bert"}), "question encoder of the kind bert"),
        (lambda folder: (folder / "config.json").write_text("{"), "is damaged"),
        (lambda folder: (folder / "config.json").unlink(), "config.json cannot be read"),
        (_pickled, "pytorch_model.bin, a pickle, which runs code"),
        (_cut, "model.safetensors is damaged"),
        (_weights({_NORM: ""}), "lacks model.decoder.layernorm_embedding.bias"),
        (_weights({_POSITIONS: ""}), "lacks the weights"),
        (_weights({_NORM: "model.norm.bias"}), "the tensor model.norm.bias and 0 more belong to neither"),
        (_without_generator_tokenizer, "holds no tokenizer"),
        (_without_question_tokenizer, "holds no tokenizer"),
        (_wordless, "knows no word beside ['[CLS]', '[MASK]', '[PAD]', '[SEP]', '[UNK]']"),
        (_with_more_words("question_encoder_tokenizer"), "has token ids up to 37 and the model 18 embeddings"),
        (_with_more_words("generator_tokenizer"), "has token ids up to 39 and the model 24 embeddings"),
        (_not_numbers, "layernorm_embedding.bias holds values that are not numbers"),
        (_config(architectures=[["RagModel"]]), "says that it is a ['RagModel']"),
        (_config(n_docs=0), "config.json is damaged"),
        (_config(max_combined_length=-5), "config.json is damaged"),
        (_config(title_sep=5), "must be texts without braces"),
        (_config(doc_sep=" {text} "), "must be texts without braces"),
        (_config_of("generator", model_type=["bart"]), "config.json is missing or damaged"),
        (_config_of("generator", d_model="wide"), "config.json is missing or damaged"),
        (_config_of("question_encoder", hidden_size="wide"), "cannot be loaded"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(theirs: Path, tmp_path: Path, damage: Any, words: str) -> None:
    folder = copied(theirs, tmp_path / "theirs")
    damage(folder)
    with pytest.raises(CheckpointError) as refused:
        import_rag(folder, tmp_path / "ours", "rag-sequence")
    assert words in str(refused.value)


def test_a_spelled_out_vocabulary_that_transformers_cannot_read_says_what_to_do(theirs: Path, tmp_path: Path) -> None:
    folder = copied(theirs, tmp_path / "theirs")
    (folder / "generator_tokenizer" / "tokenizer.json").unlink()
    (folder / "generator_tokenizer" / "vocab.json").write_text("no vocabulary")
    with pytest.raises(CheckpointError, match="and none can be made"):
        import_rag(folder, tmp_path / "ours", "rag-sequence")


@pytest.mark.parametrize(
    ("card", "words"),
    [
        ({"layout": "{question} / {title} / {text}"}, "lays its input out as title, text, question"),
        ({"layout": "{title}  {text} // {question}"}, "with single blanks"),
        ({"encoder": {"path": "x", "score_scale": 2.0}}, "encoder.score_scale = 2.0"),
        ({"encoder": {"path": "x", "question_prefix": "query: "}}, "encoder.question_prefix = query: "),
        ({"retriever": "hybrid"}, "retriever = hybrid"),
        ({"encoder": None, "retriever": "bm25"}, "is trained with bm25 and has no question encoder"),
        ({"encoder": None, "retriever": None, "family": "closed-book"}, "is a closed-book model and has no question"),
    ],
)
def test_what_their_format_cannot_say_is_refused(ours: Path, tmp_path: Path, card: dict[str, Any], words: str) -> None:
    folder = copied(ours, tmp_path / "ours")
    path = folder / "rag.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **card}))
    with pytest.raises(CheckpointError) as refused:
        export_rag(folder, tmp_path / "exported")
    assert words in str(refused.value)
    assert [one.name for one in tmp_path.iterdir()] == ["ours"]


def test_another_kind_of_question_encoder_cannot_be_exported(ours: Path, tmp_path: Path) -> None:
    from tests.support.tiny_encoders import tiny_encoder

    checkpoint, model, _ = loaded(ours)
    encoder = tiny_encoder(tmp_path / "bert", normalize=False)
    card = checkpoint.card.model_copy(update={"encoder": encoder.config})
    save_checkpoint(tmp_path / "ours", RagModel("rag-sequence", model.generator, encoder.module), encoder, card)
    with pytest.raises(CheckpointError, match="the question encoder is a bert model"):
        export_rag(tmp_path / "ours", tmp_path / "exported")


def test_an_export_never_writes_over_anything(ours: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").write_text("mine")
    with pytest.raises(CheckpointError, match="is not an empty folder"):
        export_rag(ours, tmp_path / "taken")
    (tmp_path / "empty").mkdir()
    assert export_rag(ours, tmp_path / "empty").folder == tmp_path / "empty"
    with pytest.raises(ResourceError, match="cannot be made"):
        export_rag(ours, tmp_path / "taken" / "notes.txt" / "below")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "taken"]
    assert (tmp_path / "taken" / "notes.txt").read_text() == "mine"


def test_an_export_goes_where_a_link_leads_and_nothing_beside_it_is_touched(
    ours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.partial").mkdir()
    (tmp_path / "model.partial" / "notes.txt").write_text("mine")
    (tmp_path / "link").symlink_to("model")  # that is not there yet
    export_rag(ours, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "model" / "config.json").is_file()
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(ResourceError, match="cannot be made"):
        export_rag(ours, tmp_path / "circle")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(CheckpointError, match="is the folder you are in"):
        export_rag(ours, Path())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["circle", "here", "link", "model", "model.partial"]
    assert (tmp_path / "model.partial" / "notes.txt").read_text() == "mine"


@pytest.fixture
def full_disk() -> Iterator[None]:
    """No file can grow beyond 20 kB."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_is_said_in_words_and_leaves_no_half_file(theirs: Path, ours: Path, tmp_path: Path) -> None:
    checkpoint, model, encoder = loaded(ours)
    for write in (
        lambda: import_rag(theirs, tmp_path / "imported", "rag-sequence"),
        lambda: export_rag(ours, tmp_path / "exported"),
        lambda: save_checkpoint(tmp_path / "saved", model, encoder, checkpoint.card),
    ):
        with pytest.raises(ResourceError, match="make room on its disk"):
            write()
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".safetensors", ".tmp")]
    assert not (tmp_path / "exported").exists()


@pytest.mark.parametrize("lost", ["generator/tokenizer.json", "generator/config.json", "question_encoder/config.json"])
def test_a_checkpoint_that_lost_a_file_is_not_exported(ours: Path, tmp_path: Path, lost: str) -> None:
    folder = copied(ours, tmp_path / "ours")
    (folder / lost).unlink()
    with pytest.raises(CheckpointError, match=f"{lost} is missing or damaged"):
        export_rag(folder, tmp_path / "exported")


def test_double_blanks_of_separators_are_single_ones_as_theirs_makes_them(tmp_path: Path) -> None:
    write_hf_rag(tmp_path / "theirs", title_sep="  /  ", doc_sep=" // ")
    card, _ = import_rag(tmp_path / "theirs", tmp_path / "ours", "rag-sequence")
    assert card.layout == "{title} / {text} // {question}"


def test_an_export_that_transformers_would_change_is_not_kept(ours: Path, tmp_path: Path) -> None:
    """A tensor that no model of theirs has stands for all that the two may come to differ in."""
    folder = copied(ours, tmp_path / "ours")
    weights = load_file(folder / "generator" / "model.safetensors")
    save_file({**weights, "stray": torch.zeros(1)}, folder / "generator" / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match="does not give the exported model back"):
        export_rag(folder, tmp_path / "exported")
    assert not (tmp_path / "exported").exists()


def test_an_export_whose_head_transformers_unties_is_not_kept(
    ours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As versions 4.44 and 4.49 do, without a word in their report."""
    real = CLASSES["rag-sequence"].from_pretrained

    def untying(*arguments: Any, **options: Any) -> Any:
        model, report = real(*arguments, **options)
        head = model.generator.lm_head
        head.weight = torch.nn.Parameter(head.weight.detach().clone())
        return model, report

    monkeypatch.setattr(CLASSES["rag-sequence"], "from_pretrained", untying)
    with pytest.raises(CheckpointError, match=r"rag.generator.lm_head.weight is not tied"):
        export_rag(ours, tmp_path / "exported")
    assert not (tmp_path / "exported").exists()


@torch.no_grad()
def test_half_precision_is_read_into_float32(theirs: Path, tmp_path: Path) -> None:
    model = CLASSES["rag-sequence"].from_pretrained(theirs).half()
    folder = copied(theirs, tmp_path / "theirs")
    model.save_pretrained(folder)
    import_rag(folder, tmp_path / "ours", "rag-sequence")
    _, own, encoder = loaded(tmp_path / "ours")
    assert {tensor.dtype for tensor in own.state_dict().values()} == {torch.float32}
    batch = Batch(own, encoder)
    torch.testing.assert_close(batch.our_loss(own, encoder), batch.their_loss(model.float()), rtol=1e-5, atol=1e-5)


def test_a_card_of_the_first_format_is_read_and_says_what_it_does_not_know(ours: Path, tmp_path: Path) -> None:
    folder = copied(ours, tmp_path / "ours")
    card = {**json.loads((folder / "rag.json").read_bytes()), "format": 1, "passage_fingerprint": "c" * 64}
    del card["row_ids_sha256"]
    (folder / "rag.json").write_text(json.dumps(card))
    found = load_checkpoint(folder, "rag-sequence", "dense", "c" * 64, "d" * 64)
    assert found.caveat == "whether the model was trained with the passages it answers from is not recorded"
    (folder / "rag.json").write_text(json.dumps({**card, "format": 3}))
    with pytest.raises(CheckpointError, match="has format 3"):
        load_checkpoint(folder, "rag-sequence", "dense")


def test_passages_of_another_index_or_encoder_are_refused_unless_allowed(ours: Path, tmp_path: Path) -> None:
    checkpoint, model, encoder = loaded(ours)
    card: ModelCard = checkpoint.card.model_copy(update={"passage_fingerprint": "c" * 64, "row_ids_sha256": "d" * 64})
    save_checkpoint(tmp_path, model, encoder, card)
    asked = (tmp_path, "rag-sequence", "dense")
    assert load_checkpoint(*asked, "c" * 64, "d" * 64).caveat is None
    with pytest.raises(CheckpointError, match="the passages dddddddddddd and answers from eeeeeeeeeeee"):
        load_checkpoint(*asked, "c" * 64, "e" * 64)
    swapped = load_checkpoint(*asked, "c" * 64, "e" * 64, "other passages").caveat
    assert swapped == "the model was trained with the passages dddddddddddd and answers from eeeeeeeeeeee"
    with pytest.raises(CheckpointError, match="the context encoder cccccccccccc and answers from eeeeeeeeeeee"):
        load_checkpoint(*asked, "e" * 64, "e" * 64, "other passages")
    forced = load_checkpoint(*asked, "e" * 64, "e" * 64, "every mismatch").caveat
    assert forced is not None
    assert forced.count("was trained with") == 2
