"""Every tensor that ``WholeLab`` computes agrees with the package's modules."""

import json
import random
from pathlib import Path

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

import train_whole_lab
import transformer_lab as tl
from agreement import raises
from javascript import ANY_TEXT, Engine, many_examples, parse_checked
from transformer_lab.labs import WholeLab
from transformer_lab.labs.whole import unpack

# The engine lacks atob, a function of browsers.
ATOB = """
function atob(text) {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const bits = [...text.replace(/=+$/, "")].map((c) => letters.indexOf(c).toString(2).padStart(6, "0")).join("");
  return bits.match(/.{8}/g).map((byte) => String.fromCharCode(parseInt(byte, 2))).join("");
}
"""
SOURCE, TARGET = [*"abcdefg"], ["<s>", "</s>", *"hijklmnop"]
BOS, EOS = 0, 1
MAX_NEW_TOKENS = 12


@pytest.fixture(scope="module")
def engine():
    engine = Engine(WholeLab)
    engine._context.eval(ATOB)
    return engine


@pytest.fixture(scope="module")
def load(engine):
    """Return a function that loads a lab's models into variables of the engine and returns the variables' names."""

    def load(lab):
        for stored in lab.stored:
            engine._context.eval(f"var {stored['family']} = openModel({json.dumps(stored)})")
        return [stored["family"] for stored in lab.stored]

    return load


def call_on_model(engine, function, model, *arguments):
    arguments_json = ", ".join(json.dumps(argument) for argument in arguments)
    return json.loads(engine._context.eval(f"JSON.stringify({function}({model}, {arguments_json}))"))


# Small models with every combination of options.

OPTIONS = [
    {"norm_first": norm_first, "activation": activation, "bias": bias, "final_norm": final_norm}
    for norm_first in (False, True)
    for activation in ("relu", "gelu")
    for bias in (False, True)
    for final_norm in (False, True)
]
SIZES = [(8, 1, 1, 12), (12, 3, 3, 20), (16, 8, 2, 24), (10, 5, 4, 8)]  # d_model, heads, layers, d_ff


def small_model(model_class, seed, size, options):
    torch.manual_seed(seed)
    vocabularies = (len(SOURCE), len(TARGET)) if model_class is tl.Transformer else (len(TARGET),)
    model = model_class(*vocabularies, *size[:3], size[3], **options)
    with torch.no_grad():
        for parameter in model.parameters():  # changes norms and biases too, by enough for distinct attention weights
            parameter += 0.3 * torch.randn(parameter.shape)
    return model.eval()


def lab_of(model, bos=BOS):
    """Return the lab of a model, or of a list of models of the same kind."""
    first_model = model[0] if isinstance(model, list) else model
    if isinstance(first_model, tl.Transformer):
        return WholeLab(model, SOURCE, TARGET, bos=BOS, eos=EOS)
    return WholeLab(model, TARGET, bos=bos, eos=EOS, text=TARGET[0])


MODEL_CASES = [
    pytest.param(kind, SIZES[i % 4], options, id=f"{kind.__name__}-{i}")
    for kind in (tl.Transformer, tl.LanguageModel)
    for i, options in enumerate(OPTIONS)
]


# The modules' tensors, under the names that the lab uses.


def expected_trace(model, source, target):
    """Return every tensor of a forward pass, recorded by hooks or computed from recorded tensors."""
    recorded, hooks = {}, []
    for name, module in model.named_modules():

        def record(_, inputs, output, name=name):
            recorded[name] = (inputs, output)

        hooks.append(module.register_forward_hook(record))
    has_encoder = isinstance(model, tl.Transformer)
    source, target = torch.tensor([source]), torch.tensor([target])
    with torch.no_grad():
        model(source, target) if has_encoder else model(target)
    for hook in hooks:
        hook.remove()

    def output_of(name):
        return recorded[name][1][0]

    tensors = {}
    sides = [("decoder", "tgt_embedding" if has_encoder else "embedding", target)]
    if has_encoder:
        sides = [("encoder", "src_embedding", source), *sides]
    with torch.no_grad():
        for side, embedding, tokens in sides:
            table = getattr(model, embedding).weight
            tensors[f"{side}.embedding"] = table[tokens[0]] * table.shape[1] ** 0.5
            tensors[f"{side}.positions"] = tl.sinusoidal_positions(tokens.shape[1], table.shape[1])
            x = tensors[f"{side}.input"] = output_of(embedding)
            stack = getattr(model, side)
            for layer_index, layer in enumerate(stack.layers):
                parts = ["self_attention", "cross_attention", "feed_forward"]
                parts = [part for part in parts if hasattr(layer, part)]
                for number, part in enumerate(parts, 1):
                    name = f"{side}.layers.{layer_index}.{part}"
                    flow = f"{side}.{layer_index}.{part.removesuffix('_attention')}"
                    tensors[f"{flow}.output"] = output_of(name)
                    tensors[f"{flow}.norm"] = output_of(f"{side}.layers.{layer_index}.norm{number}")
                    tensors[f"{flow}.sum"] = x + output_of(name)
                    x = tensors[f"{flow}.sum" if layer.norm_first else f"{flow}.norm"]
                    if part == "feed_forward":
                        tensors[f"{flow}.hidden"] = recorded[f"{name}.linear2"][0][0][0]
                        continue
                    heads = {
                        kind: tl.split_heads(output_of(f"{name}.{letter}_proj"), layer.self_attention.n_heads)
                        for kind, letter in (("query", "q"), ("key", "k"), ("value", "v"))
                    }
                    scores = heads["query"] @ heads["key"].mT / heads["query"].shape[-1] ** 0.5
                    mask = torch.ones(scores.shape[1:], dtype=torch.bool)
                    if side == "decoder" and part == "self_attention":
                        mask = tl.causal_mask(len(mask))
                    inputs = recorded[name][0]
                    memory = inputs[1][0] if part == "cross_attention" else None
                    weights = getattr(layer, part).weights(inputs[0][0], memory, mask)
                    merged = recorded[f"{name}.out_proj"][0][0][0]
                    tensors |= {f"{flow}.{kind}": tensor for kind, tensor in heads.items()}
                    tensors |= {f"{flow}.scores": scores, f"{flow}.mask": mask, f"{flow}.weights": weights}
                    tensors[f"{flow}.heads"] = tl.split_heads(merged, layer.self_attention.n_heads)
            if stack.norm is not None:
                x = tensors[f"{side}.last"] = output_of(f"{side}.norm")
            if side == "encoder":
                tensors["encoder.memory"] = x
        tensors["decoder.logits"] = output_of("output")
        tensors["decoder.probabilities"] = output_of("output").softmax(-1)
    return tensors


def assert_trace_equals(trace, expected):
    assert sorted(trace) == sorted(expected)
    for name, tensor in expected.items():
        assert trace[name]["shape"] == list(tensor.shape), name
        assert len(trace[name]["axes"]) == tensor.ndim, name
        values = torch.tensor(trace[name]["values"], dtype=torch.float64).view(tensor.shape)
        scale = max(1, tensor.abs().max().item() if tensor.dtype != torch.bool else 1)
        assert (values - tensor.double()).abs().max() <= 1e-5 * scale, name


def decoder_input(model, source, written, bos=BOS):
    start = [] if bos is None else [bos]
    return start + written if isinstance(model, tl.Transformer) else source + start + written


@pytest.mark.parametrize(("model_class", "size", "options"), MODEL_CASES)
def test_every_tensor_agrees_with_the_model(engine, load, model_class, size, options):
    for seed in range(2):
        model = small_model(model_class, seed, size, options)
        lab = lab_of(model, bos=BOS if seed else None) if model_class is tl.LanguageModel else lab_of(model)
        (name,) = load(lab)
        bos = lab.stored[0]["bos"]
        draw = random.Random(seed)
        for source_length, written_length in ((1, 0), (draw.randint(2, 11), draw.randint(1, 11)), (12, 11)):
            source = draw.choices(range(len(SOURCE)), k=source_length)
            written = draw.choices(range(len(TARGET)), k=written_length)
            expected = expected_trace(model, source, decoder_input(model, source, written, bos))
            assert_trace_equals(call_on_model(engine, "decode", name, source, written), expected)
            if model_class is tl.Transformer:
                encoder = {id: tensor for id, tensor in expected.items() if id.startswith("encoder.")}
                assert_trace_equals(call_on_model(engine, "encode", name, source), encoder)


@pytest.mark.parametrize(("model_class", "size", "options"), MODEL_CASES)
def test_answer_agrees_with_generate(engine, load, model_class, size, options):
    model = small_model(model_class, 5, size, options)
    lab = lab_of(model)
    (name,) = load(lab)
    draw = random.Random(5)
    for length in (1, 3, 12):
        source = draw.choices(range(len(SOURCE)), k=length)
        given = torch.tensor([decoder_input(model, source, [])])
        if model_class is tl.Transformer:
            generated = model.generate(torch.tensor([source]), bos=BOS, eos=EOS, max_new_tokens=MAX_NEW_TOKENS)
        else:
            generated = model.generate(given, MAX_NEW_TOKENS, stop=[EOS])
        expected = generated[0, given.shape[1] :].tolist()
        actual = call_on_model(engine, "generate", name, source, MAX_NEW_TOKENS)
        assert actual["tokens"] == expected
        all_tokens = torch.tensor([decoder_input(model, source, expected[:-1])])
        scores = model(torch.tensor([source]), all_tokens) if model_class is tl.Transformer else model(all_tokens)
        probabilities = scores[0, given.shape[1] - 1 :].softmax(-1).amax(-1)
        assert torch.allclose(torch.tensor(actual["probabilities"]), probabilities, atol=1e-5)
        if model_class is tl.Transformer:
            lab.text = "".join(lab.stored[0]["source"][token] for token in source)
            assert lab.answer == [TARGET[token] for token in expected if token != EOS]


# The course's two models.


@pytest.mark.parametrize("text", ["7", "13", "342", "2003", "0042", "999999"])
def test_every_tensor_agrees_with_the_courses_models(engine, load, text):
    lab = WholeLab(text=text)
    load(lab)
    source = [int(digit) for digit in text]
    for family in ("both", "decoder"):
        lab.family = family
        model = lab.model
        stored = lab.stored[["both", "decoder"].index(family)]
        written = [stored["target"].index(word) for word in lab.answer]
        for count in (0, len(written)):
            given = decoder_input(model, source, written[:count], stored["bos"])
            actual = call_on_model(engine, "decode", family, source, written[:count])
            assert_trace_equals(actual, expected_trace(model, source, given))
        words = [
            stored["target"][token]
            for token in call_on_model(engine, "generate", family, source, MAX_NEW_TOKENS)["tokens"]
        ]
        assert [word for word in words if word != "<end>"] == lab.answer


def test_facts_about_the_courses_models_are_true(engine, load):
    facts = json.loads((Path(tl.labs.whole.__file__).parent / "whole_weights.json").read_text("utf-8"))["made"]
    lab = WholeLab()
    load(lab)
    texts, held_out = train_whole_lab.split_numbers(facts["seed"])
    assert (len(texts), len(held_out)) == (facts["trained_on"], facts["held_out"])
    questions_by_name = train_whole_lab.questions(facts["seed"])
    assert {name: len(texts) for name, texts in questions_by_name.items()} == facts["asked"]
    for task, stored in zip((train_whole_lab.EncoderDecoder(), train_whole_lab.DecoderOnly()), lab.stored):
        right_counts = facts["right"][stored["family"]]
        assert sum(right_counts[f"{n} digits"] for n in (3, 4)) >= 0.995 * facts["held_out"]
        assert right_counts["5 digits"] + right_counts["6 digits"] < 0.05 * 1000
        # The number of correct answers to each set of questions agrees with the stated number to within one.
        for name, texts in questions_by_name.items():
            n_right = train_whole_lab.count_right(task, unpack(stored), texts)
            assert abs(n_right - right_counts[name]) <= 1, name  # ties may be rounded differently on other machines
        for text in held_out[:10]:
            source = [int(digit) for digit in text]
            written = call_on_model(engine, "generate", stored["family"], source, MAX_NEW_TOKENS)["tokens"]
            assert [stored["target"][token] for token in written] == [*train_whole_lab.in_words(int(text)), "<end>"]


def test_float16_is_decoded_exactly(engine):
    """Every finite float16 number must have the same value in the browser as in PyTorch."""
    bits = torch.arange(2**16).to(torch.uint16)
    values = bits.view(torch.float16).double()
    actual = json.loads(engine._context.eval("JSON.stringify(Array.from({ length: 65536 }, (_, i) => toFloat(i)))"))
    finite = values.isfinite()
    assert torch.equal(torch.tensor(actual, dtype=torch.float64)[finite], values[finite])


# Typed input.


DIGITS_LAB = WholeLab()
WORDS_LAB = WholeLab(tl.LanguageModel(3, 8, 2, 1, 8), ["ab", "c", "ba"])


@many_examples
@given(text=ANY_TEXT)
@example(text="342")
@example(text=" 3 4\t2 ")
@example(text="")
@example(text="1234567")
def test_typed_digits_are_read_alike_by_browser_and_python(engine, text):
    assert_read_alike(engine, text, DIGITS_LAB)


@many_examples
@given(text=st.text("ab c\n", max_size=30) | ANY_TEXT)
@example(text=" ab  c ab ")
def test_typed_words_are_read_alike_by_browser_and_python(engine, text):
    assert_read_alike(engine, text, WORDS_LAB)


def assert_read_alike(engine, text, lab):
    """Assert that the browser and Python both accept this text, with the same tokens, or both reject it."""
    tokens = lab.stored[0]["source"]
    result = parse_checked(engine, "tokenize", text, tokens, lab.limits["tokens"], lab.says)
    if result is None:
        with pytest.raises(ValueError, match=r"^text must"):
            lab.text = text
    else:
        lab.text = text
        assert lab.text == result["text"]
        assert [tokens[token] for token in result["value"]] == (list if tokens[0] == "0" else str.split)(lab.text)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["", [*"abc"]], "Type at least one token, such as a."),
        (["3a", [*"abc"]], "“3” is not among the model’s tokens: a, b and c."),
        (
            ["x", [f"t{i}" for i in range(14)]],
            "“x” is not among the model’s tokens: t0, t1, t2, t3, t4, t5, t6, t7, t8 and 5 others.",
        ),
        (["abcabcabcabca", [*"abc"]], "At most 12 tokens here, not 13."),
    ],
)
def test_invalid_text_gets_an_error_message(engine, arguments, error):
    text, tokens = arguments
    lab = WholeLab(tl.LanguageModel(len(tokens), 8, 2, 1, 8), tokens)
    assert engine("tokenize", text, tokens, lab.limits["tokens"], lab.says) == {"error": error}


def test_error_messages_of_the_courses_models_are_about_numbers(engine):
    lab = WholeLab()
    for text, error in (
        ("", "Type a number, such as 7."),
        ("1,000", "Digits only: the model knows 0 to 9, but no comma, sign or letter."),
        ("1234567", "At most 6 digits, not 7."),
    ):
        assert engine("tokenize", text, [*"0123456789"], lab.limits["tokens"], lab.says) == {"error": error}


# The lab in Python.


def test_a_users_model_is_copied():
    model = small_model(tl.Transformer, 1, SIZES[1], {})
    lab = WholeLab(model.train(), SOURCE, TARGET, bos=BOS, eos=EOS, text=" a bc")
    assert repr(lab) == "WholeLab(text='abc', family='both', step=0, part='')" and model.training
    assert "facts" not in lab.says and lab.examples == [] and lab.limits["tokens"] == lab.limits["written"] == 12
    before = lab.answer
    with torch.no_grad():
        model.output.weight.zero_()
    assert lab.answer == before and len(before) > 0
    lab.family = "encoder"
    assert lab.answer == [] and isinstance(lab.model, tl.Transformer)
    shared_embeddings = tl.Transformer(3, 3, 8, 2, 1, 8, share_embeddings=True)
    lab = WholeLab(shared_embeddings, ["a", "b", "c"], bos=0)  # one vocabulary and no eos
    assert len(lab.answer) == 12 and lab.stored[0]["target"] == ["a", "b", "c"]


def test_bfloat16_and_float64_models_are_accepted():
    for dtype in (torch.float64, torch.bfloat16):
        model = small_model(tl.LanguageModel, 1, SIZES[0], {}).to(dtype)
        assert torch.equal(WholeLab(model, TARGET).model.output.weight, model.output.weight.float())


# Every error, word for word.

model = tl.Transformer(3, 4, 8, 2, 1, 8)
ABC, ABCD = [*"abc"], [*"abcd"]


def lab_with_changed_model(**attributes):
    model = tl.LanguageModel(3, 8, 2, 1, 8)
    for name, value in attributes.items():
        part = model.decoder.layers[0].norm1 if name == "eps" else model.decoder.layers[0].self_attention
        setattr(part, name, value)
    return WholeLab(model, ABC)


UNSUPPORTED_MODEL = (
    "model must have layer norm, ReLU or GELU, no gate, and heads that split d_model, each with its own keys, got "
)
WRONG_CALLS = [
    (lambda: WholeLab(tokens=ABC), ValueError, "tokens must come with a model, got ['a', 'b', 'c'] alone"),
    (lambda: WholeLab(eos=0), ValueError, "eos must come with a model, got 0 alone"),
    (
        lambda: WholeLab(torch.nn.Linear(2, 2), ABC),
        TypeError,
        "model must be a tl.Transformer or a tl.LanguageModel, got Linear",
    ),
    (
        lambda: WholeLab(tl.Transformer.from_torch(torch.nn.Transformer(8, 2, 1, 1, 8, batch_first=True)), ABC),
        ValueError,
        "model must have embeddings and an output layer, got a model of from_torch, which has neither",
    ),
    (
        lambda: WholeLab(tl.LanguageModel(3, 128, 2, 1, 8), ABC),
        ValueError,
        "model must have d_model from 1 to 64, got 128",
    ),
    (
        lambda: WholeLab(tl.LanguageModel(3, 8, 2, 0, 8), ABC),
        ValueError,
        "model must have n_layers from 1 to 4, got 0",
    ),
    (
        lambda: WholeLab(tl.LanguageModel(3, 8, 2, 1, 300), ABC),
        ValueError,
        "model must have d_ff from 1 to 256, got 300",
    ),
    (
        lambda: WholeLab(tl.LanguageModel(3, 32, 16, 1, 8), ABC),
        ValueError,
        "model must have n_heads from 1 to 8, got 16",
    ),
    (
        lambda: lab_with_changed_model(rotate=lambda x, positions: x),
        ValueError,
        "model must use scaled_dot_product_attention, without rotate or window",
    ),
    (
        lambda: lab_with_changed_model(attend=tl.bidirectional_linear_attention),
        ValueError,
        "model must use scaled_dot_product_attention, without rotate or window",
    ),
    *(
        (
            lambda options=options: WholeLab(tl.LanguageModel(3, 8, 2, 1, 8, **options), ABC),
            ValueError,
            f"{UNSUPPORTED_MODEL}{unsupported} with other options",
        )
        for options, unsupported in (
            ({"norm": "rms"}, "RMSNorm"),
            ({"gated": True}, "FeedForward"),
            ({"activation": "silu"}, "FeedForward"),
            ({"n_kv_heads": 1}, "MultiHeadAttention"),
            ({"d_head": 3}, "MultiHeadAttention"),
        )
    ),
    (
        lambda: WholeLab(tl.LanguageModel(3, 8, 2, 1, 8, positions="rotary"), ABC),
        ValueError,
        "model must use scaled_dot_product_attention, without rotate or window",
    ),
    (
        lambda: WholeLab(tl.LanguageModel(3, 8, 2, 1, 8, window=2), ABC),
        ValueError,
        "model must use scaled_dot_product_attention, without rotate or window",
    ),
    (lambda: lab_with_changed_model(eps=0.1), ValueError, "model must have norms of eps 1e-05, got 0.1"),
    (lambda: WholeLab(model, bos=0), TypeError, "tokens must be a sequence of strings, got None"),
    (lambda: WholeLab(model, "abc", bos=0), TypeError, "tokens must be a sequence of strings, got 'abc'"),
    (lambda: WholeLab(model, [1, 2, 3], bos=0), TypeError, "tokens must be a sequence of strings, got [1, 2, 3]"),
    (
        lambda: WholeLab(model, ABCD, bos=0),
        ValueError,
        "tokens must have one word for each row of the embedding, 3, got 4",
    ),
    (
        lambda: WholeLab(model, ABC, bos=0),
        ValueError,
        "tgt_tokens must have one word for each row of the embedding, 4, got 3",
    ),
    (
        lambda: WholeLab(tl.LanguageModel(200, 8, 2, 1, 8), [f"{i}" for i in range(200)]),
        ValueError,
        "tokens must have at most 128 words, got 200",
    ),
    (
        lambda: WholeLab(model, ["a", "b", "a"], ABCD, bos=0),
        ValueError,
        "tokens must be different words without spaces, got 'a'",
    ),
    (
        lambda: WholeLab(model, ["a", "b c", "d"], ABCD, bos=0),
        ValueError,
        "tokens must be different words without spaces, got 'b c'",
    ),
    (
        lambda: WholeLab(tl.LanguageModel(3, 8, 2, 1, 8), ABC, ABC),
        ValueError,
        "tgt_tokens must be left out for a LanguageModel, which has one vocabulary, got ['a', 'b', 'c']",
    ),
    (
        lambda: WholeLab(model, ABC, ABCD),
        ValueError,
        "bos must be the token that every answer of a Transformer begins with, got None",
    ),
    (lambda: WholeLab(model, ABC, ABCD, bos=4), ValueError, "bos must be from 0 to 3, got 4"),
    (lambda: WholeLab(model, ABC, ABCD, bos=0, eos="d"), TypeError, "eos must be an integer, got 'd'"),
    (
        lambda: WholeLab(model, ABC, ABCD, bos=0, family="decoder"),
        ValueError,
        "family must be one of 'both', 'encoder', got 'decoder'; did you mean 'encoder'?",
    ),
    (lambda: WholeLab(family="all"), ValueError, "family must be one of 'both', 'encoder', 'decoder', got 'all'"),
    (lambda: WholeLab(text=342), TypeError, "text must be a string, got 342"),
    (lambda: WholeLab(text="34x"), ValueError, "text must consist of the model's tokens, got 'x'"),
    (lambda: WholeLab(text=""), ValueError, "text must have from 1 to 6 tokens, got 0"),
    (lambda: WholeLab(text="1234567"), ValueError, "text must have from 1 to 6 tokens, got 7"),
    (lambda: WholeLab(step=-1), ValueError, "step must be from 0 to 999, got -1"),
    (lambda: WholeLab(step=1.5), TypeError, "step must be an integer, got 1.5"),
    (lambda: WholeLab(part=None), TypeError, "part must be a string, got None"),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG_CALLS)
def test_invalid_models_raise_clear_errors(call, error, text):
    raises(call, error, text)


def test_stored_models_cannot_change():
    lab = WholeLab()
    for name in ("stored", "drawing", "limits", "examples", "says"):
        with pytest.raises(ValueError, match=rf"^{name} cannot change: make a new lab$"):
            setattr(lab, name, type(getattr(lab, name))())
