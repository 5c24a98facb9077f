"""Published models can be loaded and used, both with small random weights and with the installed real weights."""

import hashlib
import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import transformer_lab as tl
from agreement import DEVICE, assert_close, normal
from run_python import run_python
from transformer_lab import pretrained
from transformer_lab.pretrained import chat, packages, sentences

REFERENCES = json.loads(Path(__file__).with_name("pretrained_references.json").read_text("utf-8"))
CONFIG = {
    "vocab_size": 13,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 9,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
}
GGUF_METADATA = {
    "llama.block_count": 2,
    "llama.vocab_size": 11,
    "llama.embedding_length": 12,
    "llama.attention.head_count": 3,
    "llama.attention.head_count_kv": 1,
    "llama.feed_forward_length": 20,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 100.0,
    "llama.context_length": 16,
}


class LetterTokenizer:
    """A tokenizer of letters: a has id ``first_id`` (5 by default), b has the next id, …; [SEP] has id 4."""

    def __init__(self, special_tokens=(), first_id=5):
        self.special_tokens, self.first_id = special_tokens, first_id

    def no_padding(self):
        pass

    no_truncation = no_padding

    def encode(self, text):
        ids = [self.first_id + ord(letter) - ord("a") for letter in text if letter.isalpha()]
        return SimpleNamespace(ids=[*self.special_tokens[:1], *ids, *self.special_tokens[1:]])

    def encode_batch(self, texts):
        return [self.encode(text) for text in texts]

    def decode(self, ids, skip_special_tokens=True):
        return "".join(self.id_to_token(number) for number in ids if number >= self.first_id)

    def id_to_token(self, number):
        return chr(number - self.first_id + ord("a")) if number >= self.first_id else f"[{number}]"

    def token_to_id(self, token):
        return 4

    def get_added_tokens_decoder(self):
        return {4: SimpleNamespace(content="[SEP]", special=True), 9: SimpleNamespace(content="ok", special=False)}


def bert_tensors(seed=0):
    """Return random weights under BERT's names, including two that the package does not use."""
    d_model, d_ff = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    shapes = {
        "embeddings.word_embeddings.weight": (CONFIG["vocab_size"], d_model),
        "embeddings.position_embeddings.weight": (CONFIG["max_position_embeddings"], d_model),
        "embeddings.token_type_embeddings.weight": (CONFIG["type_vocab_size"], d_model),
        "embeddings.LayerNorm.weight": (d_model,),
        "embeddings.LayerNorm.bias": (d_model,),
        "pooler.dense.weight": (d_model, d_model),
    }
    for i in range(CONFIG["num_hidden_layers"]):
        matrices = {"attention.self.query": (d_model, d_model), "attention.self.key": (d_model, d_model)}
        matrices |= {"attention.self.value": (d_model, d_model), "attention.output.dense": (d_model, d_model)}
        matrices |= {"intermediate.dense": (d_ff, d_model), "output.dense": (d_model, d_ff)}
        matrices |= {"attention.output.LayerNorm": (d_model,), "output.LayerNorm": (d_model,)}
        for name, shape in matrices.items():
            shapes[f"encoder.layer.{i}.{name}.weight"], shapes[f"encoder.layer.{i}.{name}.bias"] = shape, shape[:1]
    return {name: normal(*shape, seed=seed + i).detach().cpu() for i, (name, shape) in enumerate(shapes.items())}


def run_torch_bert(tensors, tokens):
    """Compute BERT's output with torch.nn.TransformerEncoderLayer, for one sequence without padding."""
    vectors = tensors["embeddings.word_embeddings.weight"][tokens]
    vectors = vectors + tensors["embeddings.position_embeddings.weight"][: len(tokens)]
    vectors = vectors + tensors["embeddings.token_type_embeddings.weight"][0]
    weight, bias = tensors["embeddings.LayerNorm.weight"], tensors["embeddings.LayerNorm.bias"]
    x = F.layer_norm(vectors, vectors.shape[-1:], weight, bias, 1e-12)[None]
    for i in range(CONFIG["num_hidden_layers"]):
        layer = nn.TransformerEncoderLayer(12, 3, 20, 0.0, F.gelu, layer_norm_eps=1e-12, batch_first=True)
        layer_tensors = {name.removeprefix(f"encoder.layer.{i}."): tensors[name] for name in tensors}
        parts = [f"attention.self.{part}" for part in ("query", "key", "value")]
        state = {}
        for kind in ("weight", "bias"):
            state[f"self_attn.in_proj_{kind}"] = torch.cat([layer_tensors[f"{part}.{kind}"] for part in parts])
            state[f"self_attn.out_proj.{kind}"] = layer_tensors[f"attention.output.dense.{kind}"]
            state[f"linear1.{kind}"] = layer_tensors[f"intermediate.dense.{kind}"]
            state[f"linear2.{kind}"] = layer_tensors[f"output.dense.{kind}"]
            state[f"norm1.{kind}"] = layer_tensors[f"attention.output.LayerNorm.{kind}"]
            state[f"norm2.{kind}"] = layer_tensors[f"output.LayerNorm.{kind}"]
        layer.load_state_dict(state)
        x = layer(x)
    return x


def llama_tensors():
    d_model, d_kv, d_ff = 12, 4, 20
    shapes = {"token_embd.weight": (11, d_model), "output_norm.weight": (d_model,)}
    for i in range(2):
        part = {"attn_norm": (d_model,), "ffn_norm": (d_model,)}
        part |= {"attn_q": (d_model, d_model), "attn_k": (d_kv, d_model), "attn_v": (d_kv, d_model)}
        part |= {"attn_output": (d_model, d_model)}
        part |= {"ffn_gate": (d_ff, d_model), "ffn_up": (d_ff, d_model), "ffn_down": (d_model, d_ff)}
        shapes |= {f"blk.{i}.{name}.weight": shape for name, shape in part.items()}
    return {name: normal(*shape, seed=i).detach().cpu() for i, (name, shape) in enumerate(shapes.items())}


def sentence_encoder(tensors=None):
    tensors = bert_tensors() if tensors is None else tensors
    return sentences.build_sentence_encoder(CONFIG, tensors, LetterTokenizer(special_tokens=(3, 4)))


def chat_model():
    return chat.build_chat_model(GGUF_METADATA, llama_tensors(), LetterTokenizer(first_id=1))


# Names


def test_bert_weights_match_pytorch_layers():
    tensors, model = bert_tensors(), sentence_encoder()
    with torch.no_grad():
        expected = run_torch_bert(tensors, [3, 5, 6, 7, 4])
    tokens, real = model.tokens(["abc"])
    assert_close(model(tokens, real), expected.to(DEVICE))
    vectors = model.encode(["abc", "hgfedcb", "a"], batch_size=2)
    assert vectors.shape == (3, 12) and vectors.device == model.embedding.tokens.weight.device
    assert_close(vectors[:1], F.normalize(expected.mean(1), dim=-1).to(DEVICE))
    assert_close(vectors.norm(dim=-1), torch.ones(3))
    assert_close(model.encode(["a"]), vectors[2:])  # padding has no effect
    assert model.encode([]).shape == (0, 12)


def test_llama_weights_match_rotary_halves_with_permuted_rows():
    """Rows in the file are ordered for pairs of neighbours; transformers reorders them for pairs across two halves."""
    tensors, model = llama_tensors(), chat_model().model
    options = {"norm_first": True, "norm": "rms", "eps": 1e-5, "activation": "silu", "gated": True, "bias": False}
    rotate = partial(tl.rotary, base=100.0)
    permuted = tl.LanguageModel(11, 12, 3, 2, 20, **options, n_kv_heads=1, share_embeddings=True, positions=rotate)
    state = {}
    for i in range(2):
        for name in ("q", "k"):
            rows = tensors[f"blk.{i}.attn_{name}.weight"].unflatten(0, (-1, 2, 2)).transpose(1, 2).flatten(0, 2)
            state[f"decoder.layers.{i}.self_attention.{name}_proj.weight"] = rows
    permuted.load_state_dict(model.state_dict() | state)
    tokens = torch.tensor([[1, 5, 2, 7, 7]], device=DEVICE)
    assert_close(model(tokens), permuted.to(DEVICE)(tokens).detach())
    assert model.output.weight is model.embedding.weight and tl.count_parameters(model) == sum(
        x.numel() for x in tensors.values()
    )


def test_rotary_uses_interleaved_pairs_and_the_files_base():
    rotate, x = chat_model().model.decoder.layers[0].self_attention.rotate, normal(2, 3, 4, 6, seed=0)
    for start in (0, 4):
        positions = torch.arange(start, start + 4, device=DEVICE)
        assert torch.equal(rotate(x, positions), tl.rotary(x, positions, base=100.0, interleaved=True))


@pytest.mark.parametrize("make", [sentence_encoder, chat_model])
def test_models_are_frozen_in_eval_mode_and_on_the_device(make):
    state = torch.get_rng_state()
    model = make()
    assert torch.equal(torch.get_rng_state(), state)  # no random numbers are drawn for weights that a file replaces
    assert not model.training and not any(part.training for part in model.modules())
    assert all(not x.requires_grad and x.device.type == DEVICE.type for x in model.parameters())
    model.double() if DEVICE.type == "cpu" else model.half()
    model.to("cpu")  # raises an error if a tensor is still on `meta`


def test_name_tables_have_no_duplicates():
    for names in (pretrained.BERT_NAMES, pretrained.LLAMA_NAMES):
        assert len(set(names.values())) == len(names)
        assert all(
            published_name.count("{}") == our_name.count("{}") <= 1 for published_name, our_name in names.items()
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda tensors: tensors.pop("encoder.layer.1.output.dense.bias"),
            "the file must hold encoder.layer.1.output.dense.bias, which becomes "
            "encoder.layers.1.feed_forward.linear2.bias, got a file without it",
        ),
        (
            lambda tensors: tensors.update({"encoder.layer.0.attention.self.key.weight": torch.zeros(12, 11)}),
            "encoder.layer.0.attention.self.key.weight must have shape (12, 12), which is that of "
            "encoder.layers.0.self_attention.k_proj.weight, got (12, 11)",
        ),
        (
            lambda tensors: tensors.update({"encoder.layer.2.output.dense.bias": torch.zeros(12)}),
            "the model must have a place for every tensor, got none for encoder.layer.2.output.dense.bias",
        ),
    ],
)
def test_fill_refuses_a_file_that_does_not_match(change, message):
    tensors = bert_tensors()
    change(tensors)
    with pytest.raises(ValueError) as error:
        sentence_encoder(tensors)
    assert str(error.value) == message


def test_fill_refuses_names_that_do_not_match():
    model = nn.Linear(2, 1)
    tensors = {"W": torch.zeros(1, 2), "b": torch.zeros(1)}
    with pytest.raises(ValueError, match=r"^names must name every weight of the model, got none for bias$"):
        pretrained.fill(model, tensors, {"W": "weight"}, n_layers=0)
    with pytest.raises(
        ValueError, match=r"^names must map to weights of the model, got scale, which it does not have$"
    ):
        pretrained.fill(model, tensors, {"W": "weight", "b": "bias", "c": "scale"}, n_layers=0)


# Generation


@pytest.fixture(scope="module")
def letter_chat_model():
    return chat_model()


class ScriptedModel(pretrained.ChatModel):
    """A model that generates the given tokens."""

    def __init__(self, generated_tokens, tokenizer):
        super().__init__(nn.Module(), tokenizer, 10_000)
        self.generated_tokens = generated_tokens
        self.model.embedding = nn.Embedding(1, 1)
        self.model.stream = lambda tokens, max_new_tokens, **options: iter(generated_tokens[:max_new_tokens])


def test_generate_matches_the_language_model(letter_chat_model):
    tokens = torch.tensor([[1, 2, 3]], device=DEVICE)
    expected = letter_chat_model.model.generate(tokens, 9, stop=[4])[0, 3:].tolist()
    text = letter_chat_model.generate("abc", 9, chat=False)
    assert text == letter_chat_model.tokenizer.decode(expected)
    assert text == letter_chat_model.generate("abc", 9, chat=False, use_cache=False)
    assert letter_chat_model.generate("abc", 0, chat=False) == ""
    streamed = []
    assert letter_chat_model.generate("abc", 9, chat=False, show=streamed.append) == text == "".join(streamed)
    assert streamed == list(letter_chat_model.stream("abc", 9, chat=False)) and len(streamed) > 1
    options = {"temperature": 2.0, "top_k": 5}
    sampled = [
        letter_chat_model.generate("abc", 9, chat=False, **options, generator=torch.Generator(DEVICE).manual_seed(seed))
        for seed in (1, 1, 2, 3)
    ]
    assert sampled[0] == sampled[1] and len(set(sampled)) > 1


def byte_tokenizer():
    """Return a tokenizer in which each token is a byte."""
    tokenizer = LetterTokenizer()
    tokenizer.decode = lambda ids: bytes(ids).decode("utf-8", "replace")
    return tokenizer


@pytest.mark.parametrize(
    ("generated_text", "stop", "pieces"),
    [
        ("ab", (), ["a", "b"]),
        ("aé→🙂b", (), ["a", "é", "→", "🙂", "b"]),
        ("a\nb", ("\n",), ["a"]),
        ("ab##c", ("##",), ["a", "b"]),
        ("ab#c", ("##",), ["a", "b", "#c"]),
        ("ab#", ("##",), ["a", "b", "#"]),
        ("abcd", ("d", "bx", "cd"), ["a", "b"]),
        ("##", ("##",), []),
        ("", ("##",), []),
    ],
)
def test_stream_yields_whole_characters_up_to_a_stop(generated_text, stop, pieces):
    model = ScriptedModel([torch.tensor([[byte]]) for byte in generated_text.encode()], byte_tokenizer())
    assert list(model.stream("abc", stop=stop, chat=False)) == pieces
    assert model.generate("abc", stop=stop, chat=False) == "".join(pieces)


def test_an_incomplete_last_character_becomes_a_replacement_character():
    model = ScriptedModel([torch.tensor([[byte]]) for byte in "a→".encode()[:-1]], byte_tokenizer())
    assert model.generate("abc", chat=False) == "a\N{REPLACEMENT CHARACTER}"


def test_prompt_has_the_chat_format(monkeypatch):
    model, encoded_texts = chat_model(), []
    monkeypatch.setattr(model.tokenizer, "encode", lambda text: encoded_texts.append(text) or SimpleNamespace(ids=[1]))
    model.generate("Who are you?", 1)
    assert (
        encoded_texts == [model.prompt("Who are you?")]
        and "<|im_start|>user\nWho are you?<|im_end|>\n" in encoded_texts[0]
    )
    assert encoded_texts[0].endswith("<|im_start|>assistant\n")


def test_attention_returns_the_layers_weights(letter_chat_model):
    words, weights = letter_chat_model.attention("abca")
    assert words == ["a", "b", "c", "a"] and weights.shape == (2, 3, 4, 4)
    assert_close(weights.sum(-1), torch.ones(2, 3, 4))
    assert bool((weights == weights.tril()).all())
    first_layer = letter_chat_model.model.decoder.layers[0]
    normalized = first_layer.norm1(letter_chat_model.model.embedding(letter_chat_model.tokens("abca")))
    assert torch.equal(weights[0], first_layer.self_attention.weights(normalized, is_causal=True)[0])
    encoder = sentence_encoder()
    words, weights = encoder.attention("ab")
    assert words == ["[3]", "a", "b", "[4]"] and weights.shape == (2, 3, 4, 4)
    x = encoder.embedding(encoder.tokens(["ab"])[0])
    assert torch.equal(weights[1], encoder.encoder.layers[1].self_attention.weights(encoder.encoder.layers[0](x))[0])


# The exact text of errors about wrong input

BLANK_ERROR = "{} must contain readable text, got {!r}"
SPECIAL_TOKEN_ERROR = "{} must contain only ordinary text, got the special token [SEP] in {!r}"


@pytest.mark.parametrize(
    ("texts", "error_class", "message"),
    [
        ("one text", TypeError, "texts must be a list of str, got str: use [texts]"),
        (None, TypeError, "texts must be a list of str, got None"),
        ({"a", "b"}, TypeError, "texts must be a list of str, got set"),
        (["a", 3], TypeError, "texts[1] must be a str, got int"),
        ([b"a"], TypeError, "texts[0] must be a str, got bytes"),
        (["a", ""], ValueError, BLANK_ERROR.format("texts[1]", "")),
        ([" \n"], ValueError, BLANK_ERROR.format("texts[0]", " \n")),
        (["..."], ValueError, BLANK_ERROR.format("texts[0]", "...")),
        (["abcdefgh"], ValueError, "texts[0] must have at most 9 tokens, [CLS] and [SEP] included, got 10"),
        (["a [SEP] b"], ValueError, SPECIAL_TOKEN_ERROR.format("texts[0]", "a [SEP] b")),
        (["a\ud83d"], ValueError, "texts[0] must contain whole characters, got a lone surrogate: 'a\\ud83d'"),
    ],
)
def test_encode_refuses_invalid_texts(texts, error_class, message):
    with pytest.raises(error_class) as error:
        sentence_encoder().encode(texts)
    assert str(error.value) == message


def test_encoder_refuses_sequences_longer_than_n_positions():
    with pytest.raises(ValueError, match=r"^tokens must have a length of at most n_positions, which is 9, got 10$"):
        sentence_encoder()(torch.zeros(1, 10, dtype=torch.long, device=DEVICE))
    with pytest.raises(ValueError, match=r"^batch_size must be at least 1, got 0$"):
        sentence_encoder().encode(["a"], batch_size=0)


@pytest.mark.parametrize(
    ("arguments", "options", "error_class", "message"),
    [
        ((None,), {}, TypeError, "text must be a str, got None"),
        ((["a"],), {}, TypeError, "text must be a str, got list"),
        (("",), {}, ValueError, BLANK_ERROR.format("text", "")),
        (("  ",), {"chat": False}, ValueError, BLANK_ERROR.format("text", "  ")),
        (("a[SEP]",), {}, ValueError, SPECIAL_TOKEN_ERROR.format("text", "a[SEP]")),
        (("a", -1), {}, ValueError, "max_new_tokens must be at least 0, got -1"),
        (
            ("a", 2.0),
            {},
            TypeError,
            "max_new_tokens must be an integer, got 2.0: use int(max_new_tokens), or // where you divide",
        ),
        (("a", 3), {"temperature": -1}, ValueError, "temperature must be a number, 0 or more, got -1"),
        (("a", 3), {"top_k": 0}, ValueError, "top_k must be at least 1, got 0"),
        (("a", 3), {"stop": "\n"}, TypeError, "stop must be a sequence of str, none of them empty, got '\\n'"),
        (("a", 3), {"stop": [2]}, TypeError, "stop must be a sequence of str, none of them empty, got [2]"),
        (("a", 3), {"stop": [""]}, TypeError, "stop must be a sequence of str, none of them empty, got ['']"),
        (
            ("abcdefgh", 9),
            {},
            ValueError,
            "text and max_new_tokens must fit into n_positions, 16 tokens, got 8 and 9",
        ),
    ],
)
def test_generate_refuses_invalid_arguments(letter_chat_model, arguments, options, error_class, message):
    with pytest.raises(error_class) as error:
        letter_chat_model.generate(*arguments, **{"chat": False, **options})
    assert str(error.value) == message
    options.pop("use_cache", None)
    with pytest.raises(error_class):  # the error comes at the call, not when the first piece is requested
        letter_chat_model.stream(*arguments, **{"chat": False, **options})


# Packages


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package of weights, and the sha256 of its file."""
    (tmp_path / "some_model-1.2.dist-info").mkdir()
    meta = "Metadata-Version: 2.1\nName: some-model\nVersion: 1.2\n"
    (tmp_path / "some_model-1.2.dist-info" / "METADATA").write_text(meta)
    (tmp_path / "some_model").mkdir()
    (tmp_path / "some_model" / "__init__.py").write_text("raise SystemExit('this code must never run')")
    (tmp_path / "some_model" / "weights").write_bytes(b"1234")
    monkeypatch.syspath_prepend(tmp_path)
    return packages.Package("some-model", "1.2", {"some_model/weights": hashlib.sha256(b"1234").hexdigest()})


def test_reading_a_file_runs_no_code(package, tmp_path):
    assert package.read("some_model/weights") == b"1234"
    assert package.locate("some_model/weights") == tmp_path / "some_model" / "weights"
    assert "some_model" not in sys.modules


def test_a_missing_package_is_an_import_error():
    with pytest.raises(ImportError) as error:
        packages.Package("not-there-at-all", "0.1", {}).read("weights")
    message = "the weights are in not-there-at-all 0.1: python -m transformer_lab.pretrained installs the package"
    assert str(error.value) == message


def test_a_different_version_is_an_import_error(package, tmp_path):
    meta = tmp_path / "some_model-1.2.dist-info" / "METADATA"
    meta.write_text(meta.read_text().replace("1.2", "1.3"))
    with pytest.raises(ImportError, match=r"^some-model must be 1\.2, got 1\.3: python -m transformer_lab"):
        package.read("some_model/weights")


def test_a_file_with_a_different_sha256_is_refused(package, tmp_path):
    file = tmp_path / "some_model" / "weights"
    file.write_bytes(b"1235")
    actual, expected = hashlib.sha256(b"1235").hexdigest(), hashlib.sha256(b"1234").hexdigest()
    with pytest.raises(ValueError) as error:
        package.read("some_model/weights")
    assert str(error.value) == f"{file} must have sha256 {expected}, got {actual}: reinstall some-model"
    file.unlink()
    with pytest.raises(ImportError, match=r"weights must be readable, got FileNotFoundError.*: reinstall some-model$"):
        package.read("some_model/weights")


def test_loading_without_tokenizers_is_an_import_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    for load in (tl.pretrained.minilm, tl.pretrained.smollm2):
        with pytest.raises(ImportError, match=r"^text is converted to tokens by the package tokenizers: python -m"):
            load()


def test_import_loads_no_optional_package():
    code = "import sys; sys.modules |= dict.fromkeys(['tokenizers', 'safetensors', 'gguf', 'transformers'])"
    assert run_python(f"{code}; import transformer_lab as tl; print(tl.pretrained.fill.__name__)") == "fill\n"
    assert run_python("import sys, transformer_lab; print('transformer_lab.pretrained' in sys.modules)") == "False\n"


def test_fetch_pins_versions_and_announces_the_download(monkeypatch, capsys):
    """Needed packages are pinned with hashes and announced; an installed tokenizer is not replaced."""
    commands, pins = [], []

    class Pip:
        returncode = 0
        stdout = ("Collecting\n", "Installed\n")

        def __init__(self, command, **options):
            assert "180 MB" in capsys.readouterr().out  # announced before the download begins
            commands.append(command)
            pins.append(Path(command[-1]).read_text("utf-8"))

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

    monkeypatch.setattr(packages, "installed", lambda: False)
    monkeypatch.setattr(subprocess, "Popen", Pip)
    for spec in (None, "a spec"):
        monkeypatch.setattr(packages, "find_spec", lambda name, spec=spec: spec)
        pretrained.fetch()
        assert capsys.readouterr().out == "Collecting\nInstalled\n"
    Pip.returncode = 1
    with pytest.raises(ImportError, match="pip ended with 1"):
        pretrained.fetch()
    commands.pop(), pins.pop()
    assert all({"--no-deps", "--require-hashes", "--only-binary"} <= set(command) for command in commands)
    pinned_names = [[line.split("==")[0] for line in text.splitlines() if "==" in line] for text in pins]
    weights = [pretrained.MINILM.name, pretrained.SMOLLM2.name]
    assert pinned_names == [[*weights, "tokenizers"], weights]
    for package in (pretrained.MINILM, pretrained.SMOLLM2):
        assert all(f"\n\n{package.name}=={package.version} \\\n    --hash=sha256:" in text for text in pins)


def test_installed_requires_all_three_packages(monkeypatch):
    for name in (pretrained.MINILM.name, pretrained.SMOLLM2.name, "tokenizers", None):
        monkeypatch.setattr(packages, "find_spec", lambda module, missing=name: None if module == missing else "a spec")

        def distribution(package, missing=name):
            if package == missing:
                raise packages.metadata.PackageNotFoundError(package)
            version = {weights.name: weights.version for weights in (pretrained.MINILM, pretrained.SMOLLM2)}[package]
            return SimpleNamespace(version=version, locate_file=Path)

        monkeypatch.setattr(packages.metadata, "distribution", distribution)
        assert pretrained.installed() == (name is None)


# The real models


needs_weights = pytest.mark.skipif(
    not pretrained.installed(), reason="python -m transformer_lab.pretrained installs the weights"
)


@pytest.fixture(scope="module")
def minilm():
    return tl.pretrained.minilm()


@pytest.fixture(scope="module")
def smollm2():
    return tl.pretrained.smollm2()


def max_difference(actual, expected):
    return (actual.cpu() - torch.tensor(expected)).abs().max().item()


@needs_weights
def test_minilm_is_the_published_model(minilm):
    expected = REFERENCES["minilm"]
    assert tl.count_parameters(minilm) == 22_565_376
    shape = tl.ModelShape("bert", 6, 384, 12, 1536, vocab_size=30522, n_positions=512, pooler=False)
    assert tl.parameter_breakdown(minilm) == tl.parameter_breakdown(shape)
    tokens, real = minilm.tokens(expected["sentences"])
    assert [row[is_real].tolist() for row, is_real in zip(tokens, real)] == expected["tokens"]
    assert max_difference(minilm.encode(expected["sentences"]), expected["vectors"]) < 1e-5
    for sentence, heads in zip(expected["sentences"], expected["sep_to_cls"]):
        assert max_difference(minilm.attention(sentence)[1][:, :, -1, 0], heads) < 1e-4


@needs_weights
def test_minilm_encodes_any_text(minilm):
    texts = ["猫坐在垫子上", "🙂", "a" * 5000, "\x00 zero", "word " * 510]
    assert minilm.encode(texts).shape == (5, 384)
    with pytest.raises(ValueError, match=r"^texts\[0\] must have at most 512 tokens, .* got 513$"):
        minilm.encode(["word " * 511])
    with pytest.raises(
        ValueError, match=r"^texts\[0\] must contain only ordinary text, got the special token \[MASK\]"
    ):
        minilm.encode(["the [MASK] sat"])
    with pytest.raises(ValueError, match=r"^texts\[0\] must contain readable text, got '\\x00'$"):
        minilm.encode(["\x00"])


@needs_weights
def test_smollm2_is_the_published_model(smollm2):
    expected = REFERENCES["smollm2"]
    assert tl.parameter_breakdown(smollm2.model) == tl.parameter_breakdown(tl.SMOLLM2_135M)
    tokens = smollm2.tokens(expected["paragraph"])
    assert tokens[0].tolist() == expected["tokens"]
    logits = smollm2(tokens)[0]
    assert max_difference(logits[:, expected["some"]], expected["scores"]) < 1e-3
    assert logits.argmax(-1).tolist() == expected["highest"]


@needs_weights
def test_smollm2_answers_a_question(smollm2):
    expected = REFERENCES["smollm2"]
    question, stop = expected["question"], ("<|im_end|>",)
    answer = smollm2.tokenizer.decode(expected["answer"])
    assert smollm2.generate(question, 20) == answer == "The capital of France is Paris."
    assert smollm2.generate(question, 20, use_cache=False) == answer
    assert smollm2.generate(question, 20, stop=["France"]) == "The capital of "
    assert smollm2.generate("The capital of France is", 1, chat=False) == " Paris"
    for text in (f"{question}{stop[0]}", "<|endoftext|>", "a<|im_start|>"):
        with pytest.raises(ValueError, match=r"^text must contain only ordinary text, got the special token <\|"):
            smollm2.generate(text)
    with pytest.raises(ValueError, match=r"^text and max_new_tokens must fit into n_positions, 8192 tokens, got"):
        smollm2.generate("word " * 8200)


@needs_weights
@pytest.mark.parametrize(
    "text", ["naïve 🙂 北京 12345", "  two  spaces\n\n\ttab", "don't I'll", "\x00\x7f", "0123 4.56"]
)
def test_smollm2_tokens_decode_to_the_text(smollm2, text):
    tokens = smollm2.tokens(text)[0].tolist()
    assert smollm2.tokenizer.decode(tokens) == text
    digits = [token for token in map(smollm2.tokenizer.id_to_token, tokens) if any(map(str.isdigit, token))]
    assert all(len(token) == 1 for token in digits)


@needs_weights
def test_both_models_match_transformers(minilm, smollm2):
    pytest.importorskip("transformers", reason="transformers is not installed: pip install -e .[references]")
    references = pytest.importorskip("model_references", reason="transformers needs gguf and accelerate for this")
    if DEVICE.type != "cpu":
        pytest.skip("this test compares on the CPU")
    with torch.no_grad():
        tokens, real = minilm.tokens(references.SENTENCES)
        expected = references.bert()(tokens, attention_mask=real.long(), output_attentions=True)
        actual = minilm(tokens, real)
        assert (actual - expected.last_hidden_state)[real].abs().max().item() < 1e-5
        tokens = smollm2.tokens(references.PARAGRAPH)
        actual, expected = smollm2(tokens), references.llama()(tokens).logits
    assert (actual - expected).abs().max().item() < 1e-3 and torch.equal(actual.argmax(-1), expected.argmax(-1))
