"""What ``WholeLab`` computes (with parts switched off, sampling, accuracy) agrees with an independent forward pass."""

import json
import math
from pathlib import Path

import pytest
import torch

import train_whole_lab
import transformer_lab as tl
from javascript import Engine
from test_whole_maths import ATOB, call_on_model, decoder_input, lab_of, small_model
from transformer_lab.labs import WholeLab, whole_models
from transformer_lab.labs.whole import unpack
from whole_switches import switched_off, switches_of


@pytest.fixture(scope="module")
def engine():
    engine = Engine(WholeLab)
    engine._context.eval(ATOB)
    return engine


def trace_with_parts_off(stored, source, target_tokens, off):
    """Compute the trace in float64 from nothing but the weights."""
    tensors = {}
    model = unpack(stored).double()
    weight = dict(model.state_dict())
    heads, d_model = stored["nHeads"], weight["output.weight"].shape[1]
    d_head = d_model // heads

    def linear(name, x):
        y = x @ weight[f"{name}.weight"].T
        return y + weight[f"{name}.bias"] if f"{name}.bias" in weight else y

    def norm(name, x):
        y = (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
        y = y * weight[f"{name}.weight"]
        return y + weight[f"{name}.bias"] if f"{name}.bias" in weight else y

    def attend(name, flow, x, memory, causal):
        q, k, v = (
            linear(f"{name}.{letter}_proj", y).view(len(y), heads, d_head).transpose(0, 1)
            for letter, y in (("q", x), ("k", memory), ("v", memory))
        )
        scores = q @ k.mT / (1 if "scale" in off else d_head**0.5)
        mask = torch.ones(scores.shape[1:], dtype=torch.bool)
        if causal and "mask" not in off:
            mask = mask.tril()
        weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
        head_outputs = weights @ v
        for head in range(heads):
            if f"{flow}.{head}" in off:
                head_outputs[head] = 0
        parts = {
            "query": q,
            "key": k,
            "value": v,
            "scores": scores,
            "mask": mask,
            "weights": weights,
            "heads": head_outputs,
        }
        tensors.update({f"{flow}.{part}": tensor for part, tensor in parts.items()})
        return linear(f"{name}.out_proj", head_outputs.transpose(0, 1).reshape(len(x), d_model))

    def stack(side, table, tokens, memory):
        tensors[f"{side}.embedding"] = weight[table][tokens] * d_model**0.5
        tensors[f"{side}.positions"] = tl.sinusoidal_positions(len(tokens), d_model).double()
        x = tensors[f"{side}.embedding"] + (0 if "positions" in off else tensors[f"{side}.positions"])
        tensors[f"{side}.input"] = x
        for i in range(stored["nLayers"]):
            name = f"{side}.layers.{i}"
            sublayers = ["self", *(["cross"] if memory is not None else []), "feed_forward"]
            for number, sublayer in enumerate(sublayers, 1):
                flow = f"{side}.{i}.{sublayer}"
                y = norm(f"{name}.norm{number}", x) if stored["normFirst"] else x
                normalized = y
                if sublayer == "feed_forward":
                    hidden = linear(f"{name}.feed_forward.linear1", y)
                    activate = torch.relu if stored["activation"] == "relu" else torch.nn.functional.gelu
                    tensors[f"{flow}.hidden"] = activate(hidden)
                    y = linear(f"{name}.feed_forward.linear2", tensors[f"{flow}.hidden"])
                else:
                    keys_and_values = memory if sublayer == "cross" else y
                    y = attend(
                        f"{name}.{sublayer}_attention",
                        flow,
                        y,
                        keys_and_values,
                        side == "decoder" and sublayer == "self",
                    )
                if sublayer == "cross" and "cross" in off:
                    y = torch.zeros_like(y)
                tensors[f"{flow}.output"] = y
                total = tensors[f"{flow}.sum"] = y if "residual" in off else x + y
                tensors[f"{flow}.norm"] = normalized if stored["normFirst"] else norm(f"{name}.norm{number}", total)
                x = total if stored["normFirst"] else tensors[f"{flow}.norm"]
        if f"{side}.norm.weight" in weight:
            x = tensors[f"{side}.last"] = norm(f"{side}.norm", x)
        return x

    memory = None
    if stored["family"] == "both":
        memory = tensors["encoder.memory"] = stack("encoder", "src_embedding.weight", source, None)
    table = "tgt_embedding.weight" if memory is not None else "embedding.weight"
    tensors["decoder.logits"] = linear("output", stack("decoder", table, target_tokens, memory))
    tensors["decoder.probabilities"] = tensors["decoder.logits"].softmax(-1)
    return tensors


@pytest.mark.parametrize("kind", [tl.Transformer, tl.LanguageModel])
@pytest.mark.parametrize("norm_first", [False, True])
def test_every_tensor_with_parts_switched_off_agrees_with_a_separate_forward_pass(engine, kind, norm_first):
    model = small_model(kind, 3, (12, 3, 2, 20), {"norm_first": norm_first})
    (stored,) = lab_of(model).stored
    engine._context.eval(f"var whole = openModel({json.dumps(stored)})")
    source, written = [2, 4, 0, 6], [3, 5, 4, 2]
    target_tokens = decoder_input(model, source, written)
    single_switches = switches_of(model)
    for off in [
        [],
        *([name] for name in single_switches),
        ["mask", "residual"],
        ["scale", "decoder.1.self.2"],
        single_switches,
    ]:
        expected = trace_with_parts_off(stored, source, target_tokens, off)
        trace = call_on_model(engine, "decode", f"switchOff(whole, {json.dumps(off)})", source, written)
        assert sorted(trace) == sorted(expected)
        for name, tensor in expected.items():
            values = torch.tensor(trace[name]["values"], dtype=torch.float64).view(tensor.shape)
            scale = max(1, tensor.double().abs().max().item())
            assert (values - tensor.double()).abs().max() <= 1e-5 * scale, (off, name)
        with switched_off(model, off), torch.no_grad():  # the hooks with which the accuracies are measured
            inputs = (
                (torch.tensor([source]), torch.tensor([target_tokens]))
                if kind is tl.Transformer
                else (torch.tensor([target_tokens]),)
            )
            logits = model(*inputs)[0].double()
        assert (logits - expected["decoder.logits"]).abs().max() <= 1e-4 * max(1, logits.abs().max().item()), off
    for name, x in small_model(kind, 3, (12, 3, 2, 20), {"norm_first": norm_first}).state_dict().items():
        assert torch.equal(model.state_dict()[name], x), name  # switched_off() restores the model


def test_a_draw_chooses_among_the_most_likely(engine):
    logits = torch.tensor([0.3, 2.0, -1.0, 1.5])
    for temperature in (0.1, 1, 5):
        for k in (1, 2, None):
            likeliest = logits.topk(k or 4).indices
            expected = (
                torch.full((4,), -torch.inf).index_copy(0, likeliest, logits[likeliest]).div(temperature).softmax(-1)
            )
            for draw in (0, 0.2, 0.5, 0.9, 0.999999):
                chosen = engine("choose", logits.tolist(), {"temperature": temperature, "topK": k or 0}, draw)
                assert torch.allclose(torch.tensor(chosen["probabilities"], dtype=torch.float32), expected, atol=1e-6)
                assert chosen["token"] == int((expected.cumsum(0) <= draw).sum())


def test_temperature_zero_is_greedy_and_a_seed_draws_the_same_again(engine):
    (stored,) = WholeLab().stored[:1]
    engine._context.eval(f"var course = openModel({json.dumps(stored)})")

    def generate(temperature, seed, top_k=0):
        sampling = json.dumps({"temperature": temperature, "topK": top_k, "seed": seed})
        return json.loads(
            engine._context.eval(f"JSON.stringify(generate(course, [3, 4, 2], 12, samplerOf({sampling})).tokens)")
        )

    greedy = json.loads(engine._context.eval("JSON.stringify(generate(course, [3, 4, 2], 12).tokens)"))
    assert generate(0, 1) == greedy == generate(5, 7, top_k=1)
    assert generate(5, 7) == generate(5, 7)
    assert len({tuple(generate(5, seed)) for seed in range(8)}) > 4


def test_questions_are_those_of_the_training(engine):
    for stored, task in zip(WholeLab().stored, (train_whole_lab.EncoderDecoder, train_whole_lab.DecoderOnly)):
        engine._context.eval(f"var course = openModel({json.dumps(stored)})")
        numbers = ["7", "13", "342", "2003"]
        questions = json.loads(engine._context.eval(f"JSON.stringify(questionsOf(course, {json.dumps(numbers)}))"))
        for text, question in zip(numbers, questions):
            words = [*train_whole_lab.in_words(int(text)), "<end>"]
            assert question == {"source": [*map(int, text)], "answer": [task.target.index(word) for word in words]}


def test_stored_accuracies_are_those_of_the_stored_models(engine):
    """The counts of correct answers in JavaScript, in PyTorch and in the stored results differ by at most a few."""
    lab = WholeLab()
    numbers = lab.learning["held_out"][::10]
    for family, task in (("both", train_whole_lab.EncoderDecoder()), ("decoder", train_whole_lab.DecoderOnly())):
        for models in (*lab.checkpoints, lab.stored):
            stored = next(model for model in models if model["family"] == family)
            engine._context.eval(f"var course = openModel({json.dumps(stored)}); var asked = {json.dumps(numbers)}")
            n_right_in_javascript = engine._context.eval(
                "questionsOf(course, asked).filter(({source, answer}) => "
                "generate(course, source, answer.length).tokens.join() === answer.join()).length"
            )
            # Rounding differs between machines, so either of two almost equally likely words may win.
            assert abs(n_right_in_javascript - train_whole_lab.count_unseen(task, unpack(stored), numbers)) <= 1
        steps = lab.learning["steps"]
        assert len(lab.learning["right"][family]) == len(steps) == len(lab.checkpoints) + 1
        assert set(lab.learning["switches"][family]) == set(switches_of(unpack(stored)))
        for name in ("mask", "scale", "residual"):
            n_right = train_whole_lab.count_unseen(task, unpack(stored), lab.learning["held_out"], [name])
            assert abs(n_right - lab.learning["switches"][family][name]) <= 5


def test_weights_that_cannot_be_fetched_are_reported_once(engine):
    engine._context.eval(
        """
        const counts = { requests: [], drawings: 0 };
        const page = {
          get: (name) => ({ stored: [], checkpoints: [{ file: "gone.js" }] })[name],
          load: async ({ file }) => { counts.requests.push(file); throw new Error("404"); },
        };
        const weights = checkpointWeights(page, () => { counts.drawings += 1; });
        weights.at(0);
        """
    )
    engine._context.eval("Promise.resolve().then(() => weights.at(0))")
    result = engine._context.eval("JSON.stringify([weights.at(0), [...weights.failed], counts, weights.at(1)])")
    assert json.loads(result) == [None, [0], {"requests": ["gone.js"], "drawings": 1}, []]


def test_the_curve_of_the_losses_goes_through_their_means():
    learning = json.loads((Path(whole_models.__file__).parent / "whole_learning.json").read_text("utf-8"))
    for family, losses in learning["loss"].items():
        loss_curve = WholeLab().learning["curves"][family]
        points = [tuple(map(float, point.split())) for point in loss_curve["line"].removeprefix("M").split("L")]
        assert len(points) == len(losses) + 2
        for (x, y), (next_x, next_y), loss, next_loss in zip(points[1:], points[2:], losses, losses[1:]):
            assert next_x > x and ((next_y > y) == (next_loss < loss) or next_y == pytest.approx(y, abs=0.2))
        (_, high), (_, low) = loss_curve["marks"][:2]  # 1 and 0.1
        for (_, y), loss in zip(points[1:], losses):
            assert y == pytest.approx(
                high + (low - high) * -math.log10(loss), abs=0.4
            )  # the positions of both marks are rounded
        for (*_, text), step in zip(loss_curve["dots"], learning["steps"]):
            nearby_losses = [losses[min(max(int(step / 25 + shift), 0), 59)] for shift in (-0.51, 0.49)]
            assert min(nearby_losses) * 0.95 <= float(text) <= max(nearby_losses) * 1.05


def test_a_list_of_models_is_shown_as_checkpoints_of_a_training():
    models = [small_model(tl.Transformer, seed, (12, 3, 2, 20), {}) for seed in range(3)]
    lab = lab_of(models)
    assert lab.checkpoint == 2 and len(lab.checkpoints) == 2 and lab.learning == {"steps": [0, 1, 2]}
    for number, model in enumerate(models):
        lab.checkpoint = number
        assert all(torch.equal(x, model.state_dict()[name]) for name, x in lab.model.state_dict().items())
    with pytest.raises(ValueError, match="model must be a list of models with the same options and sizes"):
        lab_of([models[0], small_model(tl.Transformer, 1, (12, 3, 1, 20), {})])
    with pytest.raises(ValueError, match="model must be a model or a list of at least one, got an empty list"):
        WholeLab([])


@pytest.mark.parametrize(
    "arguments, text",
    [
        ({"off": ["masks"]}, "off must be one of"),
        ({"off": 3}, "off must be"),
        ({"checkpoint": 9}, "checkpoint must be from 0 to 5"),
        ({"temperature": 6}, "temperature must be from 0 to 5"),
        ({"top_k": 99}, "top_k must be from 0 to 33"),
        ({"tool": "mend"}, "tool must be"),
    ],
)
def test_bad_settings_are_refused(arguments, text):
    with pytest.raises((TypeError, ValueError)) as raised:
        WholeLab(**arguments)
    assert text in str(raised.value)
