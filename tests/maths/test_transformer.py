"""Stacks and the whole Transformer agree with PyTorch's modules, and generation agrees with training."""

import copy
import inspect
import io
import math
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import transformer_lab as tl
from agreement import (
    DEVICE,
    DTYPES,
    FULL_PRECISION,
    assert_close,
    assert_gradients_close,
    assert_same_parameters,
    assert_separate_copies,
    normal,
    prepare,
    raises,
)

D_MODEL, N_HEADS, D_FF = 12, 3, 20
SRC_VOCAB, TGT_VOCAB, BOS, EOS = 11, 13, 1, 2
both_norm_placements = pytest.mark.parametrize("norm_first", [False, True])


def build_transformer(seed=0, dtype=torch.float32, **options):
    torch.manual_seed(seed)
    options = {"n_layers": 2} | options
    model = tl.Transformer(SRC_VOCAB, TGT_VOCAB, D_MODEL, N_HEADS, d_ff=D_FF, **options).to(DEVICE)
    with torch.no_grad():
        for i, parameter in enumerate(model.parameters()):
            if parameter.ndim == 1:
                parameter += 0.1 * normal(*parameter.shape, seed=1000 * seed + i)
    return model.to(dtype).eval()


def tokens(*shape, vocab=SRC_VOCAB, seed=1):
    return torch.randint(vocab, shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def vectors(length, seed=1, dtype=torch.float32):
    return normal(2, length, D_MODEL, seed=seed, dtype=dtype)


# Agreement with PyTorch's stacks.


def build_torch_stacks(batch_first, norm_first, final_norm, dtype):
    torch.manual_seed(0)
    options = {"dropout": 0.0, "batch_first": batch_first, "norm_first": norm_first, "activation": "gelu"}
    sizes = (D_MODEL, N_HEADS, D_FF)
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(*sizes, **options),
        3,
        nn.LayerNorm(D_MODEL, eps=0.01) if final_norm else None,
        enable_nested_tensor=False,
    )
    decoder = nn.TransformerDecoder(
        nn.TransformerDecoderLayer(*sizes, **options), 3, nn.LayerNorm(D_MODEL) if final_norm else None
    )
    for stack in (encoder, decoder):  # PyTorch initializes its layers as copies of one another
        for parameter in stack.parameters():
            if parameter.ndim > 1:
                nn.init.xavier_uniform_(parameter)
    return prepare(encoder, dtype), prepare(decoder, dtype, seed=1)


@pytest.mark.parametrize("dtype", FULL_PRECISION)
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("final_norm", [True, False])
@both_norm_placements
def test_stacks_match_pytorch(norm_first, final_norm, batch_first, dtype):
    torch_encoder, torch_decoder = build_torch_stacks(batch_first, norm_first, final_norm, dtype)
    state = torch.get_rng_state()
    encoder, decoder = tl.Encoder.from_torch(torch_encoder), tl.Decoder.from_torch(torch_decoder)
    assert torch.equal(torch.get_rng_state(), state)
    assert (encoder.norm is None) == (decoder.norm is None) != final_norm
    assert len(encoder.layers) == len(decoder.layers) == 3
    x, y = vectors(5, dtype=dtype), vectors(6, seed=2, dtype=dtype)
    causal, padding = tl.causal_mask(5, device=DEVICE), tl.padding_mask([6, 2], 6, device=DEVICE)
    source_padding = ~padding[:, 0, 0]

    def in_torch_layout(t):
        return t if batch_first else t.transpose(0, 1)

    expected = in_torch_layout(torch_encoder(in_torch_layout(y), src_key_padding_mask=source_padding))
    actual = encoder(y, padding)
    assert_close(actual, expected)
    assert_gradients_close(actual, expected, [y])
    assert_same_parameters(actual, encoder, expected, torch_encoder)
    assert_close(encoder(x, is_causal=True), in_torch_layout(torch_encoder(in_torch_layout(x), mask=~causal)))
    assert_close(encoder(x, causal), encoder(x, is_causal=True))
    expected = in_torch_layout(
        torch_decoder(in_torch_layout(x), in_torch_layout(y), tgt_mask=~causal, memory_key_padding_mask=source_padding)
    )
    for actual in (decoder(x, y, causal, padding), decoder(x, y, memory_mask=padding, is_causal=True)):
        assert_close(actual, expected)
        assert_gradients_close(actual, expected, [x, y])
        assert_same_parameters(actual, decoder, expected, torch_decoder)
    assert_separate_copies(encoder, torch_encoder)
    assert_separate_copies(decoder, torch_decoder)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # PyTorch warns about an option that it sets itself
@pytest.mark.parametrize("dtype", FULL_PRECISION)
@both_norm_placements
def test_transformer_matches_pytorch(norm_first, dtype):
    torch.manual_seed(0)
    torch_model = nn.Transformer(
        D_MODEL, N_HEADS, 2, 3, D_FF, dropout=0.0, norm_first=norm_first, batch_first=not norm_first
    )
    torch_model = prepare(torch_model, dtype)
    state = torch.get_rng_state()
    our_model = tl.Transformer.from_torch(torch_model)
    assert torch.equal(torch.get_rng_state(), state)
    assert_separate_copies(our_model, torch_model)
    assert (len(our_model.encoder.layers), len(our_model.decoder.layers)) == (2, 3)
    src, tgt = vectors(6, dtype=dtype), vectors(5, seed=2, dtype=dtype)
    src_mask, tgt_mask = tl.padding_mask([6, 2], 6, device=DEVICE), tl.padding_mask([3, 5], 5, device=DEVICE)
    causal = ~tl.causal_mask(5, device=DEVICE)

    def in_torch_layout(t):
        return t.transpose(0, 1) if norm_first else t

    expected = in_torch_layout(
        torch_model(
            in_torch_layout(src),
            in_torch_layout(tgt),
            tgt_mask=causal,
            src_key_padding_mask=~src_mask[:, 0, 0],
            tgt_key_padding_mask=~tgt_mask[:, 0, 0],
            memory_key_padding_mask=~src_mask[:, 0, 0],
        )
    )
    actual = our_model(src, tgt, src_mask, tgt_mask)
    assert_close(actual, expected)
    assert_gradients_close(actual, expected, [src, tgt])
    assert_same_parameters(actual, our_model, expected, torch_model)
    assert_close(
        our_model(src, tgt), in_torch_layout(torch_model(in_torch_layout(src), in_torch_layout(tgt), tgt_mask=causal))
    )
    assert_close(
        our_model(src, tgt, is_causal=False), in_torch_layout(torch_model(in_torch_layout(src), in_torch_layout(tgt)))
    )
    text = "generate requires embeddings and an output layer: this model was made by from_torch and has neither"
    raises(lambda: our_model.generate(src, bos=1, max_new_tokens=2), ValueError, text)


def test_from_torch_keeps_training_mode():
    torch_model = nn.Transformer(8, 2, 1, 1, 16, dropout=0.25, batch_first=True)
    assert all(part.training for part in tl.Transformer.from_torch(torch_model).modules())
    our_model = tl.Transformer.from_torch(torch_model.eval())
    assert not any(part.training for part in our_model.modules())
    assert {part.p for part in our_model.modules() if isinstance(part, nn.Dropout)} == {0.25}


# Our own stacks.


@both_norm_placements
@pytest.mark.parametrize("final_norm", [None, True, False])
def test_stack_is_its_layers_and_an_optional_norm(norm_first, final_norm):
    torch.manual_seed(0)
    encoder = prepare(tl.Encoder(D_MODEL, N_HEADS, 3, D_FF, norm_first=norm_first, final_norm=final_norm))
    decoder = prepare(tl.Decoder(D_MODEL, N_HEADS, 3, D_FF, norm_first=norm_first, final_norm=final_norm))
    assert (encoder.norm is not None) == (norm_first if final_norm is None else final_norm)
    assert len({id(layer) for layer in encoder.layers}) == 3
    # each layer has its own initial weights
    assert not torch.equal(*(layer.feed_forward.linear1.weight for layer in encoder.layers[:2]))
    x = memory = vectors(5)
    for layer in encoder.layers:
        memory = layer(memory)
    memory = memory if encoder.norm is None else encoder.norm(memory)
    assert_close(encoder(x), memory)
    y = x
    for layer in decoder.layers:
        y = layer(y, memory, is_causal=True)
    assert_close(decoder(x, memory, is_causal=True), y if decoder.norm is None else decoder.norm(y))


def test_stack_without_layers_is_the_identity():
    x = vectors(5)
    assert torch.equal(tl.Encoder(D_MODEL, N_HEADS, 0, D_FF)(x), x)
    model = build_transformer(n_layers=0)
    src, tgt = tokens(2, 4), tokens(2, 5)
    mask = torch.ones(2, 1, 1, 5, dtype=torch.bool, device=DEVICE)
    assert_close(model(src, tgt, tgt_mask=mask), model.output(model.tgt_embedding(tgt)))


@both_norm_placements
def test_without_positions_the_model_is_permutation_equivariant(norm_first):
    torch.manual_seed(0)
    encoder = prepare(tl.Encoder(D_MODEL, N_HEADS, 2, D_FF, norm_first=norm_first))
    x, order = vectors(5), torch.tensor([3, 0, 4, 2, 1])
    assert_close(encoder(x[:, order]), encoder(x)[:, order])
    model = build_transformer(norm_first=norm_first)  # with positions, the order changes the result
    src = tokens(2, 5)
    assert not torch.allclose(model.encode(src[:, order]), model.encode(src)[:, order], atol=1e-3)


# The embedding.


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_embedding_is_scaled_row_plus_position(dtype):
    embedding = tl.TokenEmbedding(SRC_VOCAB, D_MODEL).to(DEVICE)
    inputs = tokens(2, 3, 5).to(dtype)
    for start in (0, 1, 7):
        actual = embedding(inputs, start=start)
        positions = tl.sinusoidal_positions(5 + start, D_MODEL, device=DEVICE)[start:]
        assert_close(actual, embedding.weight[inputs.long()] * math.sqrt(D_MODEL) + positions)
    assert actual.shape == (2, 3, 5, D_MODEL)


@pytest.mark.parametrize("dtype", [*FULL_PRECISION, torch.bfloat16])
def test_position_table_grows_on_demand(dtype):
    embedding = tl.TokenEmbedding(SRC_VOCAB, D_MODEL).to(DEVICE, dtype)
    inputs = tokens(1, 300)
    positions = tl.sinusoidal_positions(900, D_MODEL, device=DEVICE)
    rows = (embedding.weight[inputs] * math.sqrt(D_MODEL)).detach()
    for length in (127, 128, 129, 300):
        actual = embedding(inputs[:, :length])
        assert_close(actual, rows[:, :length] + positions[:length])
        assert actual.dtype == dtype
    assert_close(embedding(inputs, start=600), rows + positions[600:])
    assert_close(embedding(inputs[:, :1], start=0), rows[:, :1] + positions[:1])
    assert list(embedding.state_dict()) == ["weight"]
    assert embedding.positions.dtype == dtype and embedding.positions.device == embedding.weight.device


def test_embedding_initializes_with_variance_1():
    torch.manual_seed(0)
    embedding = tl.TokenEmbedding(2000, 64)
    assert abs((embedding.weight * 8).std() - 1) < 0.01 and abs(embedding.weight.mean()) < 0.001


def test_embedding_drops_features_in_training():
    embedding = tl.TokenEmbedding(SRC_VOCAB, D_MODEL, dropout=1.0).to(DEVICE)
    assert (embedding(tokens(2, 5)) == 0).all() and (embedding.eval()(tokens(2, 5)) != 0).any()
    model = build_transformer(dropout=0.5)
    assert {part.p for part in model.modules() if isinstance(part, nn.Dropout)} == {0.5}


# The Transformer.


def test_model_output_matches_its_parts():
    model = build_transformer()
    src, tgt = tokens(2, 6), tokens(2, 5, vocab=TGT_VOCAB)
    mask = tl.padding_mask([6, 3], 6, device=DEVICE)
    memory = model.encoder(model.src_embedding(src), mask)
    x = model.decoder(model.tgt_embedding(tgt), memory, memory_mask=mask, is_causal=True)
    expected = F.linear(x, model.output.weight)
    assert expected.shape == (2, 5, TGT_VOCAB)
    assert_close(model(src, tgt, mask), expected)
    assert_close(model.decode(tgt, model.encode(src, mask), memory_mask=mask), expected)
    tgt_mask = tl.padding_mask([2, 5], 5, device=DEVICE)
    actual = model(src, tgt, mask, tgt_mask)
    assert_close(actual, model(src, tgt, mask, tgt_mask & tl.causal_mask(5, device=DEVICE), is_causal=False))
    assert_close(actual[1], expected[1])
    assert_close(actual[0, :2], expected[0, :2])
    assert not torch.allclose(actual[0, 2:], expected[0, 2:], atol=1e-3)


@both_norm_placements
def test_output_does_not_depend_on_later_tokens(norm_first):
    model = build_transformer(norm_first=norm_first)
    src, tgt = tokens(2, 6), tokens(2, 5, vocab=TGT_VOCAB)
    before, changed = model(src, tgt), tgt.clone()
    changed[:, 3:] = (changed[:, 3:] + 1) % TGT_VOCAB
    for mask in (None, torch.ones(2, 1, 1, 5, dtype=torch.bool, device=DEVICE)):
        after = model(src, changed, tgt_mask=mask)
        assert_close(after[:, :3], before[:, :3])
        assert (after[:, 3:] - before[:, 3:]).abs().amax(-1).min() > 1e-3
    without_mask = model(src, tgt, is_causal=False)
    assert not torch.allclose(without_mask[:, :3], before[:, :3], atol=1e-3)


@both_norm_placements
def test_masked_source_tokens_do_not_change_the_output(norm_first):
    model = build_transformer(norm_first=norm_first)
    src, tgt = tokens(2, 6), tokens(2, 5, vocab=TGT_VOCAB)
    mask = tl.padding_mask([4, 6], 6, device=DEVICE)
    changed = src.clone()
    changed[0, 4:] = (changed[0, 4:] + 1) % SRC_VOCAB
    before, after = model(src, tgt, mask), model(changed, tgt, mask)
    assert_close(after, before)
    assert not torch.allclose(model(changed, tgt)[0], model(src, tgt)[0], atol=1e-3)
    # The outputs are also the same with more padding, and without any padding.
    longer = torch.cat([src, tokens(2, 3, seed=5)], dim=1)
    assert_close(model(longer, tgt, tl.padding_mask([4, 6], 9, device=DEVICE)), before)
    assert_close(model(src[:1, :4], tgt[:1]), before[:1])
    options = {"bos": BOS, "max_new_tokens": 6}
    generated = model.generate(src, mask, **options)
    assert torch.equal(model.generate(longer, tl.padding_mask([4, 6], 9, device=DEVICE), **options), generated)
    assert torch.equal(model.generate(src[:1, :4], **options), generated[:1])


def test_source_of_padding_only_is_finite():
    model = build_transformer()
    src, tgt = tokens(2, 6), tokens(2, 5, vocab=TGT_VOCAB)
    mask = tl.padding_mask([0, 6], 6, device=DEVICE)
    scores = model(src, tgt, mask)
    scores.sum().backward()
    assert scores.isfinite().all() and all(p.grad.isfinite().all() for p in model.parameters())


# Generation.


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("use_cache", [True, False])
@both_norm_placements
def test_generation_matches_teacher_forcing(norm_first, use_cache, seed):
    model = build_transformer(
        seed, norm_first=norm_first, activation=("relu", "gelu")[seed % 2], final_norm=seed % 3 == 0
    )
    src, mask = tokens(3, 6, seed=seed), tl.padding_mask([6, 2, 5], 6, device=DEVICE) if seed % 2 else None
    generated = model.generate(src, mask, bos=BOS, max_new_tokens=9, use_cache=use_cache)
    assert generated.shape == (3, 10) and generated.dtype == torch.int64 and (generated[:, 0] == BOS).all()
    scores = model(src, generated[:, :-1], mask)
    assert torch.equal(scores.argmax(-1), generated[:, 1:])
    assert len(generated[:, 1:].unique()) > 1


@pytest.mark.parametrize("norm_first", [False, True])
def test_cache_does_not_change_scores(norm_first):
    model = build_transformer(norm_first=norm_first)
    src, tgt = tokens(2, 6), tokens(2, 8, vocab=TGT_VOCAB)
    mask = tl.padding_mask([6, 3], 6, device=DEVICE)
    expected, memory = model(src, tgt, mask), model.encode(src, mask)
    caches, memories = [tl.KeyValueCache() for _ in model.decoder.layers], model.decoder.project_memory(memory)
    for i in range(8):
        x = model.tgt_embedding(tgt[:, i : i + 1], start=i)
        actual = model.output(model.decoder.step(x, caches, memories, mask))
        assert_close(actual[:, 0], expected[:, i])


@pytest.mark.parametrize("use_cache", [True, False])
def test_generation_grows_the_position_table(use_cache):
    model = build_transformer(n_layers=1)
    generated = model.generate(tokens(1, 3), bos=BOS, max_new_tokens=140, use_cache=use_cache)
    new_model = build_transformer(n_layers=1)
    assert torch.equal(new_model(tokens(1, 3), generated[:, :-1]).argmax(-1), generated[:, 1:])


def force_generation(model, *tokens_to_generate):
    """Make the model generate these tokens in order, for any source: its output depends on the positions only."""
    with torch.no_grad():
        for parameter in model.decoder.parameters():
            parameter.zero_()
        for layer in model.decoder.layers:  # post-norm with a zero bias preserves the direction
            for name in ("norm1", "norm2", "norm3"):
                getattr(layer, name).weight.fill_(1)
        model.tgt_embedding.weight.zero_()
        positions = tl.layer_norm(tl.sinusoidal_positions(len(tokens_to_generate), D_MODEL, device=DEVICE))
        solution = torch.linalg.pinv(positions.cpu()) @ F.one_hot(torch.tensor(tokens_to_generate), TGT_VOCAB).float()
        model.output.weight.copy_(solution.T)
    return model


@pytest.mark.parametrize("use_cache", [True, False])
def test_eos_ends_a_target_and_pads_it(use_cache):
    model = force_generation(build_transformer(), 5, 7, EOS, 8, 9)
    options = {"bos": BOS, "max_new_tokens": 5, "use_cache": use_cache}
    assert model.generate(tokens(2, 4), **options).tolist() == [[BOS, 5, 7, EOS, 8, 9]] * 2
    assert model.generate(tokens(2, 4), eos=EOS, **options).tolist() == [[BOS, 5, 7, EOS]] * 2
    assert model.generate(tokens(2, 4), eos=8, **options | {"max_new_tokens": 3}).tolist() == [[BOS, 5, 7, EOS]] * 2


@pytest.mark.parametrize("use_cache", [True, False])
def test_finished_targets_are_padded_until_all_have_ended(use_cache):
    model, src = build_transformer(3), tokens(6, 5, seed=7)
    options = {"bos": BOS, "max_new_tokens": 12, "use_cache": use_cache, "temperature": 1.5}
    n_padded = 0
    for seed in range(5):
        generator = torch.Generator(DEVICE).manual_seed(seed)
        generated = model.generate(src, eos=EOS, generator=generator, **options).tolist()
        for row in generated:
            if EOS in row:
                end = row.index(EOS)
                assert row[end:] == [EOS] * (len(row) - end)
                n_padded += len(row) - end > 1
        if len(generated[0]) < 13:
            assert all(row[-1] == EOS for row in generated) and any(row[-2] != EOS for row in generated)
    assert n_padded > 3


def test_temperature_divides_the_scores():
    model, src = build_transformer(), tokens(400, 1, seed=3) * 0
    scores = model(src[:1], torch.tensor([[BOS]], device=DEVICE))[0, -1]

    def draw(temperature, seed=0):
        generator = torch.Generator(DEVICE).manual_seed(seed)
        return model.generate(src, bos=BOS, max_new_tokens=1, temperature=temperature, generator=generator)[:, 1]

    for temperature in (0.5, 1.0, 3.0):
        frequencies = torch.bincount(draw(temperature), minlength=TGT_VOCAB) / 400
        expected = torch.softmax(scores / temperature, -1)
        assert (frequencies - expected).abs().max() < 4 * math.sqrt(0.25 / 400)
        assert torch.equal(draw(temperature), draw(temperature)) and not torch.equal(draw(temperature), draw(1.0, 1))
    for temperature in (0, 0.0, 1e-6, 1e-40):
        assert (draw(temperature) == scores.argmax()).all()
    assert len(draw(1e6).unique()) == len(draw(math.inf).unique()) == TGT_VOCAB
    state = torch.get_rng_state()
    draw(0)
    draw(1.0)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != torch.float32])
def test_generation_works_in_other_dtypes(dtype):
    model, src = build_transformer(dtype=dtype), tokens(2, 5)
    for temperature in (0.0, 1e-4, 1.0):
        generated = model.generate(src, bos=BOS, max_new_tokens=4, temperature=temperature)
        assert generated.shape == (2, 5) and ((generated >= 0) & (generated < TGT_VOCAB)).all()
    assert model(src, generated).dtype == dtype
    assert_close(model(src, generated), copy.deepcopy(model).cpu().double()(src.cpu(), generated.cpu()))


def test_generation_disables_dropout_and_restores_modes():
    model = build_transformer(dropout=0.5).train()
    model.encoder.layers[1].eval()
    before = [part.training for part in model.modules()]
    options = {"bos": BOS, "max_new_tokens": 6}
    generated = model.generate(tokens(2, 5), **options)
    assert [part.training for part in model.modules()] == before
    assert torch.equal(generated, copy.deepcopy(model).eval().generate(tokens(2, 5), **options))
    assert torch.equal(generated, model.generate(tokens(2, 5), **options))
    with pytest.raises(ValueError, match="src must be from 0"):
        model.generate(tokens(2, 5) + SRC_VOCAB, **options)
    assert [part.training for part in model.modules()] == before
    assert not torch.equal(model(tokens(2, 5), generated), model(tokens(2, 5), generated))


def test_generation_has_no_gradients_and_keeps_its_inputs():
    model, src = build_transformer(), tokens(2, 5).int()
    before, recorded = src.clone(), []
    hook = model.output.register_forward_hook(lambda *_: recorded.append(torch.is_grad_enabled()))
    generated = model.generate(src, bos=BOS, max_new_tokens=3)
    hook.remove()
    assert recorded == [False] * 3
    assert torch.is_grad_enabled() and generated.dtype == torch.int64
    assert torch.equal(src, before) and src._version == 0
    with torch.inference_mode():
        assert torch.equal(model.generate(src, bos=BOS, max_new_tokens=3), generated)
    model(src, generated).sum().backward()  # training still works


@pytest.mark.parametrize("use_cache", [True, False])
def test_generation_may_be_empty(use_cache):
    model, options = build_transformer(), {"bos": BOS, "use_cache": use_cache}
    assert model.generate(tokens(2, 5), max_new_tokens=0, **options).tolist() == [[BOS], [BOS]]
    assert model.generate(tokens(0, 5), max_new_tokens=3, **options).shape == (0, 4)
    assert model.generate(tokens(0, 5), max_new_tokens=3, temperature=1.0, **options).shape == (0, 4)
    assert model.generate(tokens(2, 0), max_new_tokens=3, **options).shape == (2, 4)
    assert model.generate(tokens(2, 1), max_new_tokens=1, **options).shape == (2, 2)
    assert model(tokens(2, 5), tokens(2, 0)).shape == (2, 0, TGT_VOCAB)
    assert model(tokens(2, 0), tokens(2, 3)).isfinite().all()


# Parameters and copies.


def count_parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize("bias", [True, False])
def test_parameters_are_counted_once(bias):
    options = {"d_model": D_MODEL, "n_heads": N_HEADS, "n_layers": 2, "d_ff": D_FF, "bias": bias}
    separate = tl.Transformer(SRC_VOCAB, SRC_VOCAB, **options)
    shared = tl.Transformer(SRC_VOCAB, SRC_VOCAB, share_embeddings=True, **options)
    norm = (1 + bias) * D_MODEL
    attention = 4 * (D_MODEL**2 + bias * D_MODEL)
    feed_forward = 2 * D_MODEL * D_FF + bias * (D_MODEL + D_FF)
    body = 2 * (attention + feed_forward + 2 * norm) + 2 * (2 * attention + feed_forward + 3 * norm)
    assert count_parameters(separate) == body + 3 * SRC_VOCAB * D_MODEL
    assert count_parameters(shared) == body + SRC_VOCAB * D_MODEL
    pre = tl.Transformer(SRC_VOCAB, SRC_VOCAB, norm_first=True, **options)
    assert count_parameters(pre) == count_parameters(separate) + 2 * norm


def test_shared_embeddings_are_one_parameter():
    torch.manual_seed(0)
    model = tl.Transformer(11, 11, D_MODEL, N_HEADS, 1, D_FF, share_embeddings=True).to(DEVICE)
    copies = [model, copy.deepcopy(model), copy.deepcopy(model).to(FULL_PRECISION[-1])]
    for copied in copies:
        assert copied.src_embedding.weight is copied.tgt_embedding.weight is copied.output.weight
    with torch.no_grad():
        model.output.weight.fill_(0.5)
    assert (model.src_embedding.weight == 0.5).all() and not (copies[1].output.weight == 0.5).any()
    model(tokens(2, 5), tokens(2, 5)).sum().backward()
    assert model.src_embedding.weight.grad is model.output.weight.grad


def test_copied_models_generate_the_same():
    model, src = build_transformer(), tokens(2, 5)
    generated = model.generate(src, bos=BOS, max_new_tokens=5)
    model.tgt_embedding(tokens(1, 200))  # caches positions beyond the sequence; copies must handle this cache
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    loaded = build_transformer(seed=5)
    assert not torch.equal(loaded(src, generated), model(src, generated))
    loaded.load_state_dict(torch.load(file, weights_only=True))
    assert not [name for name in model.state_dict() if "position" in name]
    for copied in (loaded, copy.deepcopy(model), copy.deepcopy(model).to(FULL_PRECISION[-1])):
        assert torch.equal(copied.generate(src, bos=BOS, max_new_tokens=5), generated)
    assert_close(copy.deepcopy(model).to(FULL_PRECISION[-1])(src, generated).float(), model(src, generated))


def test_model_learns_to_copy():
    torch.manual_seed(0)
    model = tl.Transformer(6, 6, 16, 2, 1, 32, norm_first=True, share_embeddings=True).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    generator = torch.Generator().manual_seed(0)
    for _ in range(120):
        src = torch.randint(2, 6, (64, 3), generator=generator).to(DEVICE)
        tgt = torch.cat([torch.full_like(src[:, :1], BOS), src], dim=1)
        loss = F.cross_entropy(model(src, tgt[:, :-1]).flatten(0, 1), tgt[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < math.log(4) / 2  # a uniform guess has a loss of log(4)
    copied = model.generate(src, bos=BOS, max_new_tokens=3)[:, 1:] == src
    assert copied.float().mean() > 0.75


# Loading, copying and compiling.


@pytest.mark.parametrize("assign", [False, True])
def test_weights_can_be_loaded_through_meta(assign):
    model, src, tgt = build_transformer(), tokens(2, 6), tokens(2, 5, vocab=TGT_VOCAB)
    with torch.device("meta"):
        empty = tl.Transformer(SRC_VOCAB, TGT_VOCAB, D_MODEL, N_HEADS, d_ff=D_FF, n_layers=2)
    if not assign:
        empty = empty.to_empty(device=DEVICE)
        for x in empty.buffers():
            x.fill_(torch.nan)
        empty = empty.to_empty(device=DEVICE)
    empty.load_state_dict(model.state_dict(), assign=assign)
    moved = copy.deepcopy(empty).to(DEVICE)  # moved before its first use, when its positions have no values yet
    for loaded in (moved, empty):
        assert_close(loaded.eval()(src, tgt), model(src, tgt))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_may_be_the_default_dtype(dtype):
    src, tgt = tokens(2, 6), tokens(2, 5, vocab=TGT_VOCAB)
    torch.set_default_dtype(dtype)
    try:
        model = tl.Transformer(SRC_VOCAB, TGT_VOCAB, D_MODEL, N_HEADS, 2, D_FF).to(DEVICE).eval()
        assert model(src, tgt).dtype == dtype
        assert model.src_embedding.positions.dtype == dtype
    finally:
        torch.set_default_dtype(torch.float32)


def test_shared_layers_stay_shared():
    layer = nn.TransformerEncoderLayer(D_MODEL, N_HEADS, D_FF, dropout=0.0)
    torch_encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    torch_encoder.layers = nn.ModuleList([torch_encoder.layers[0]] * 3)
    our_encoder = tl.Encoder.from_torch(torch_encoder)
    assert our_encoder.layers[0] is our_encoder.layers[2]
    assert tl.count_parameters(our_encoder) == tl.count_parameters(torch_encoder)


def test_source_mask_must_hide_whole_tokens():
    model, src, tgt = build_transformer(), tokens(5, 5), tokens(5, 5, vocab=TGT_VOCAB)
    causal, real = tl.causal_mask(5, device=DEVICE), tl.padding_mask([5, 4, 3, 2, 1], 5, device=DEVICE)
    for mask in (causal, real[:, 0, 0]):  # the second mask is ambiguous, since there are as many sentences as tokens
        text = (
            f"src_mask must hide whole source tokens, in shape (batch, heads, 1, src_len), got {tuple(mask.shape)}: "
            "for a different mask in the encoder, use model.decode(tgt, model.encode(src, mask), memory_mask=…)"
        )
        raises(lambda mask=mask: model(src, tgt, mask), ValueError, text)
        raises(lambda mask=mask: model.generate(src, mask, bos=BOS, max_new_tokens=1), ValueError, text)
    assert_close(model(src, tgt, causal[-1]), model(src, tgt))
    assert model.decode(tgt, model.encode(src, causal)).isfinite().all()


@pytest.mark.skipif(DEVICE.type != "cpu", reason="compiles for the CPU")
def test_the_whole_model_compiles_and_exports_as_one_graph():
    model, src, tgt = build_transformer(), tokens(2, 6), tokens(2, 5, vocab=TGT_VOCAB)
    expected = model(src, tgt)
    assert_close(torch.compile(model, backend="eager", fullgraph=True)(src, tgt), expected)
    assert_close(torch.export.export(model, (src, tgt)).module()(src, tgt), expected)
    lengths = torch.tensor([4, 6])
    mask = torch.compile(lambda lengths: tl.padding_mask(lengths, 6), backend="eager", fullgraph=True)(lengths)
    assert torch.equal(mask, tl.padding_mask(lengths, 6))
    query, key, value = (normal(2, 3, 5, 4, seed=seed).detach() for seed in range(3))

    def linear(query, key, value):
        return tl.bidirectional_linear_attention(query, key, value, feature_map=torch.exp)

    compiled = torch.compile(linear, backend="eager", fullgraph=True)
    assert_close(compiled(query, key, value), linear(query, key, value))
    assert compiled(*(x.to("meta") for x in (query, key, value))).is_meta


# The decoder-only model.


def build_language_model(seed=0, **options):
    torch.manual_seed(seed)
    model = tl.LanguageModel(TGT_VOCAB, D_MODEL, N_HEADS, d_ff=D_FF, **{"n_layers": 2} | options)
    return prepare(model, seed=1000 * seed).eval()


@both_norm_placements
def test_language_model_matches_pytorch(norm_first):
    torch_encoder, _ = build_torch_stacks(batch_first=True, norm_first=norm_first, final_norm=True, dtype=torch.float32)
    model = tl.LanguageModel(TGT_VOCAB, D_MODEL, N_HEADS, 3, D_FF, norm_first=norm_first, final_norm=True).to(DEVICE)
    model.decoder = tl.Encoder.from_torch(torch_encoder)
    prompt = tokens(2, 5, vocab=TGT_VOCAB)
    x = F.embedding(prompt, model.embedding.weight) * math.sqrt(D_MODEL)
    x = x + tl.sinusoidal_positions(5, D_MODEL, device=DEVICE)
    x = torch_encoder(x, mask=~tl.causal_mask(5, device=DEVICE), is_causal=True)
    assert_close(model(prompt), F.linear(x, model.output.weight))


@both_norm_placements
@pytest.mark.parametrize("final_norm", [None, True, False])
def test_language_model_output_matches_its_parts(norm_first, final_norm):
    model = build_language_model(norm_first=norm_first, final_norm=final_norm, activation="gelu", bias=False)
    assert (model.decoder.norm is not None) == (norm_first if final_norm is None else final_norm)
    prompt = tokens(2, 5, vocab=TGT_VOCAB)
    x = model.embedding(prompt)
    for layer in model.decoder.layers:
        x = layer(x, tl.causal_mask(5, device=DEVICE))
    expected = model.output(x if model.decoder.norm is None else model.decoder.norm(x))
    assert_close(model(prompt), expected)
    changed = prompt.clone()
    changed[:, 3:] = (changed[:, 3:] + 1) % TGT_VOCAB
    assert_close(model(changed)[:, :3], expected[:, :3])
    shared = tl.LanguageModel(TGT_VOCAB, 8, 2, 1, 16, share_embeddings=True)
    assert shared.output.weight is shared.embedding.weight
    assert tl.count_parameters(shared) == tl.count_parameters(tl.LanguageModel(TGT_VOCAB, 8, 2, 1, 16)) - 8 * TGT_VOCAB


@pytest.mark.parametrize("seed", range(4))
@both_norm_placements
def test_language_model_generation_matches_teacher_forcing(norm_first, seed):
    model = build_language_model(seed, norm_first=norm_first, n_layers=seed)
    prompt = tokens(3, 1 + seed, vocab=TGT_VOCAB, seed=seed).int()
    generated = model.train().generate(prompt, 9)
    assert model.training and generated.dtype == torch.int64
    assert torch.equal(generated, model.generate(prompt, 9, use_cache=False))
    assert torch.equal(generated[:, : 1 + seed], prompt.long())
    assert torch.equal(model.eval()(generated)[:, seed:-1].argmax(-1), generated[:, 1 + seed :])
    # the result for a sequence does not depend on the rest of the batch
    assert torch.equal(model.generate(prompt[1:2], 9), generated[1:2])


@pytest.mark.parametrize("use_cache", [True, False])
def test_stop_tokens_end_a_sequence_and_pad_it(use_cache):
    model, prompt = build_language_model(), torch.tensor([[3, 1], [EOS, 4], [5, 5], [6, 0]], device=DEVICE)
    options = {"use_cache": use_cache, "temperature": 1.5}
    stop_tokens, lengths = (EOS, 7), set()
    for seed in range(8):
        generated, without_stop = (
            model.generate(
                prompt, 12, stop=stop, generator=torch.Generator(DEVICE).manual_seed(seed), **options
            ).tolist()
            for stop in (stop_tokens, ())
        )
        for row, row_without_stop in zip(generated, without_stop):
            # a stop token in the prompt does not end generation
            end = next((i for i in range(2, 14) if row_without_stop[i] in stop_tokens), 13)
            assert row[: end + 1] == row_without_stop[: end + 1][: len(row)] and row[end + 1 :] == [
                row_without_stop[end]
            ] * (len(row) - end - 1)
        if len(generated[0]) < 14:
            assert all(row[-1] in stop_tokens for row in generated)
        lengths.add(len(generated[0]))
    assert len(lengths) > 1
    assert model.generate(prompt, 0, stop=stop_tokens).tolist() == prompt.tolist()


def test_top_k_samples_among_the_best():
    model, prompt = build_language_model(), tokens(1, 4, vocab=TGT_VOCAB).expand(400, 4)
    scores = model(prompt[:1])[0, -1]

    def draw(**options):
        generator = torch.Generator(DEVICE).manual_seed(0)
        return model.generate(prompt, 1, generator=generator, **options)[:, -1]

    best_tokens = scores.topk(3).indices
    sampled = draw(temperature=2.0, top_k=3)
    assert set(sampled.tolist()) == set(best_tokens.tolist())
    frequencies = torch.stack([(sampled == token).float().mean() for token in best_tokens])
    assert (frequencies - torch.softmax(scores[best_tokens] / 2, -1)).abs().max() < 4 * math.sqrt(0.25 / 400)
    assert (draw(temperature=1.0, top_k=1) == scores.argmax()).all() and (draw() == scores.argmax()).all()
    assert torch.equal(draw(temperature=9.0, top_k=TGT_VOCAB), draw(temperature=9.0))
    assert torch.equal(draw(temperature=9.0, top_k=1000), draw(temperature=9.0))


# A Llama-style model.

LLAMA_OPTIONS = {"norm_first": True, "norm": "rms", "eps": 1e-5, "activation": "silu", "gated": True, "bias": False}


def compute_llama(tokens, weights, n_heads, base):
    """Compute the model's output by the papers' equations, in float64, one token, head and pair at a time."""
    weights = {name: x.detach().cpu().double() for name, x in weights.items()}

    def normalize(x, name):  # Zhang and Sennrich 2019, equation 4
        return x / (x.square().mean() + 1e-5).sqrt() * weights[f"{name}.weight"]

    def rotate(x, position):  # Su et al. 2021, equation 13, on the pairs (i, i + d_head / 2)
        half = len(x) // 2
        factors = [complex(math.cos(a), math.sin(a)) for a in (position * base ** (-i / half) for i in range(half))]
        pairs = [complex(x[i], x[i + half]) * factor for i, factor in enumerate(factors)]
        return torch.tensor([z.real for z in pairs] + [z.imag for z in pairs], dtype=torch.float64)

    stream = [weights["embedding.weight"][token] for token in tokens]
    n_layers = 1 + max(int(name.split(".")[2]) for name in weights if ".layers." in name)
    for layer in (f"decoder.layers.{n}" for n in range(n_layers)):
        normalized_stream = [normalize(x, f"{layer}.norm1") for x in stream]
        matrix = {name: weights[f"{layer}.self_attention.{name}_proj.weight"] for name in ("q", "k", "v", "out")}
        d_head = matrix["q"].shape[0] // n_heads
        heads = {name: [(matrix[name] @ x).split(d_head) for x in normalized_stream] for name in "qkv"}
        group = n_heads // len(heads["k"][0])  # Ainslie et al. 2023: neighbours share keys and values
        for i in range(len(tokens)):
            outputs = []
            for head in range(n_heads):
                query = rotate(heads["q"][i][head], i)
                keys = [rotate(heads["k"][j][head // group], j) for j in range(i + 1)]
                exponentials = torch.stack([query @ key / math.sqrt(d_head) for key in keys]).exp()
                values = torch.stack([heads["v"][j][head // group] for j in range(i + 1)])
                outputs.append((exponentials / exponentials.sum()) @ values)
            stream[i] = stream[i] + matrix["out"] @ torch.cat(outputs)
        for i, x in enumerate(stream):
            x = normalize(x, f"{layer}.norm2")
            matrices = {name: weights[f"{layer}.feed_forward.{name}.weight"] for name in ("gate", "linear1", "linear2")}
            gate = matrices["gate"] @ x  # Shazeer 2020, equation 6: SwiGLU
            stream[i] = stream[i] + matrices["linear2"] @ (gate / (1 + (-gate).exp()) * (matrices["linear1"] @ x))
    return torch.stack([weights["output.weight"] @ normalize(x, "decoder.norm") for x in stream])


@pytest.mark.parametrize("dtype", FULL_PRECISION)
@pytest.mark.parametrize(
    ("n_heads", "n_kv_heads", "base", "shared"), [(6, 2, 1e4, True), (3, 1, 5e5, False), (4, None, 1e4, True)]
)
def test_llama_style_model_matches_the_papers_formula(n_heads, n_kv_heads, base, shared, dtype):
    positions = "rotary" if base == 1e4 else partial(tl.rotary, base=base)
    torch.manual_seed(0)
    options = LLAMA_OPTIONS | {"n_kv_heads": n_kv_heads, "positions": positions, "share_embeddings": shared}
    model = prepare(tl.LanguageModel(TGT_VOCAB, 4 * n_heads, n_heads, 2, D_FF, **options), dtype).eval()
    prompt = tokens(2, 7, vocab=TGT_VOCAB)
    expected = torch.stack([compute_llama(row, model.state_dict(), n_heads, base) for row in prompt.tolist()])
    assert_close(model(prompt), expected)
    assert not any("bias" in name for name, _ in model.named_parameters())
    assert torch.equal(model.generate(prompt, 12), model.generate(prompt, 12, use_cache=False))


def test_rotary_model_has_no_sinusoidal_positions():
    model = tl.LanguageModel(TGT_VOCAB, 12, 3, 1, 8, positions="rotary").to(DEVICE)
    prompt = tokens(2, 5, vocab=TGT_VOCAB)
    assert torch.equal(model.embedding(prompt, start=3), F.embedding(prompt, model.embedding.weight))
    assert model.embedding.positions is None
    assert all(layer.self_attention.rotate is tl.rotary for layer in model.decoder.layers)
    assert tl.LanguageModel(TGT_VOCAB, 12, 3, 1, 8).decoder.layers[0].self_attention.rotate is None


def test_stream_yields_the_tokens_of_generate():
    model = tl.LanguageModel(TGT_VOCAB, D_MODEL, N_HEADS, 2, D_FF, dropout=0.5).to(DEVICE)
    prompt = tokens(2, 5, vocab=TGT_VOCAB)
    expected = model.generate(prompt, 6)
    generated = model.stream(prompt, 6)
    assert model.training  # the mode changes only when the first token is requested
    first_tokens = next(generated)
    assert first_tokens.shape == (2, 1) and not first_tokens.requires_grad and torch.is_grad_enabled()
    assert not any(part.training for part in model.modules())
    assert torch.equal(torch.cat([prompt, first_tokens, *generated], dim=1), expected)
    assert all(part.training for part in model.modules())
    generated = model.stream(prompt, 6)
    next(generated)
    generated.close()
    assert all(part.training for part in model.modules())
    assert list(model.stream(prompt, 0)) == [] and torch.equal(model.generate(prompt, 0), prompt)
    with pytest.raises(ValueError, match=r"^max_new_tokens must be at least 0, got -1$"):
        model.stream(prompt, -1)


# Options that stacks and models pass on to their layers.

LAYER_PARAMETERS = inspect.signature(tl.EncoderLayer).parameters
OPTIONS = {
    "dropout": 0.25,
    "norm_first": True,
    "activation": "silu",
    "bias": False,
    "norm": "rms",
    "eps": 0.01,
    "gated": True,
    "n_kv_heads": 1,
    "rotate": partial(tl.rotary, base=100.0),
    "d_head": 6,
    "qk_norm": True,
    "window": 3,
}


def read_options(layer, attention, norm):
    """Return the options with which a layer was made, read from its parts."""
    feed_forward = layer.feed_forward
    return {
        "dropout": {layer.dropout.p, attention.dropout, feed_forward.dropout.p},
        "norm_first": {layer.norm_first},
        "activation": {feed_forward.activation},
        "bias": {part.bias is not None for part in (attention.q_proj, attention.out_proj, feed_forward.linear1)},
        "norm": {{tl.RMSNorm: "rms", tl.LayerNorm: "layer"}[type(norm)]},
        "eps": {norm.eps, attention.q_norm.eps, attention.k_norm.eps},
        "gated": {feed_forward.gate is not None},
        "n_kv_heads": {attention.n_kv_heads},
        "rotate": {attention.rotate},
        "d_head": {attention.d_head, attention.q_proj.out_features // 3, attention.out_proj.in_features // 3},
        "qk_norm": {type(part) is tl.RMSNorm for part in (attention.q_norm, attention.k_norm)},
        "window": {attention.window},
    }


@pytest.mark.parametrize(
    ("model_class", "sizes"),
    [
        (tl.Encoder, (12, 3, 2, 20)),
        (tl.Decoder, (12, 3, 2, 20)),
        (tl.Transformer, (11, 13, 12, 3, 2, 20)),
        (tl.LanguageModel, (11, 12, 3, 2, 20)),
    ],
)
def test_every_option_reaches_every_layer(model_class, sizes):
    """Options passed by name or by position reach every layer, and the final norm is like the norms of the layers."""
    options = dict(OPTIONS)
    if model_class is tl.LanguageModel:
        options["positions"] = options.pop("rotate")
    with_keywords, positional = model_class(*sizes, **options), [options.pop(name) for name in list(options)[:4]]
    for built in (with_keywords, model_class(*sizes, *positional, **options)):
        stacks = [part for part in built.modules() if isinstance(part, (tl.Encoder, tl.Decoder))]
        layers = [layer for stack in stacks for layer in stack.layers]
        assert len(layers) == 2 * len(stacks) == (4 if model_class is tl.Transformer else 2)
        for layer in layers:
            assert layer.feed_forward.linear1.weight.shape == (20, 12) and layer.self_attention.n_heads == 3
            norms = [part for name, part in layer.named_children() if name.startswith("norm")]
            for norm in (*norms, *(stack.norm for stack in stacks)):
                actual = read_options(layer, layer.self_attention, norm)
                assert actual == {name: {value} for name, value in OPTIONS.items()}
            if isinstance(layer, tl.DecoderLayer):
                assert read_options(layer, layer.cross_attention, norm) == actual | {"rotate": {None}, "window": {None}}


@pytest.mark.parametrize("model_class", [tl.DecoderLayer, tl.Encoder, tl.Decoder, tl.Transformer, tl.LanguageModel])
def test_options_have_the_same_default_everywhere(model_class):
    parameters = inspect.signature(model_class).parameters
    shared = [name for name in LAYER_PARAMETERS if name in parameters]
    assert [name for name in parameters if name in LAYER_PARAMETERS] == shared  # in the same order
    assert shared[:7] == ["d_model", "n_heads", "d_ff", *list(OPTIONS)[:4]]
    for name in shared:
        parameter, layer_parameter = parameters[name], LAYER_PARAMETERS[name]
        assert (parameter.default, parameter.annotation, parameter.kind) == (
            layer_parameter.default,
            layer_parameter.annotation,
            layer_parameter.kind,
        ), name


@both_norm_placements
def test_transformer_accepts_modern_options(norm_first):
    options = {"norm": "rms", "eps": 0.01, "gated": True, "n_kv_heads": 1, "activation": "gelu_tanh"}
    model = build_transformer(norm_first=norm_first, **options, rotate=tl.rotary)
    norms = [part for part in model.modules() if isinstance(part, (tl.LayerNorm, tl.RMSNorm))]
    assert len(norms) == 10 + 2 * norm_first and all(type(x) is tl.RMSNorm and x.eps == 0.01 for x in norms)
    assert all(part.n_kv_heads == 1 for part in model.modules() if isinstance(part, tl.MultiHeadAttention))
    src = tokens(2, 5)
    generated = model.generate(src, bos=BOS, max_new_tokens=9)
    assert torch.equal(generated, model.generate(src, bos=BOS, max_new_tokens=9, use_cache=False))


def test_llama_style_model_can_be_copied_moved_and_saved():
    model = prepare(tl.LanguageModel(TGT_VOCAB, 12, 3, 1, 8, **LLAMA_OPTIONS, n_kv_heads=1, positions="rotary"))
    prompt, file = tokens(2, 5, vocab=TGT_VOCAB), io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    for copied in (copy.deepcopy(model), torch.load(file, weights_only=False)):
        assert torch.equal(copied(prompt), model(prompt))
    with torch.device("meta"):
        empty = tl.LanguageModel(TGT_VOCAB, 12, 3, 1, 8, **LLAMA_OPTIONS, n_kv_heads=1, positions="rotary")
    empty.load_state_dict(model.state_dict(), assign=True)
    assert torch.equal(empty(prompt), model(prompt))


@pytest.mark.skipif(DEVICE.type != "cpu", reason="compiles for the CPU")
def test_llama_style_model_compiles_as_one_graph():
    model = tl.LanguageModel(TGT_VOCAB, 12, 3, 1, 8, **LLAMA_OPTIONS, n_kv_heads=1, positions="rotary")
    prompt = tokens(2, 5, vocab=TGT_VOCAB)
    assert_close(torch.compile(model, backend="eager", fullgraph=True)(prompt), model(prompt))


# The exact text of every error.

small = tl.Transformer(11, 13, 8, 2, 1, 16)
src, tgt = torch.zeros(2, 5, dtype=torch.long), torch.zeros(2, 4, dtype=torch.long)
token_mask = torch.ones(2, 1, 1, 5, dtype=torch.bool)
TOKENS_ERROR = "{} must be a tensor of int64 or int32, got {}"
MASK_DTYPE_ERROR = "must be bool, True where a query may attend, got torch.{} with 0 and 1"
MASK_SHAPE_ERROR = "{} must broadcast to the scores (2, 2, {}), got shape {}: its axis {} must be 1 or {}, not {}"


def generate_small(src_tokens=src, **options):
    return small.generate(src_tokens, **{"bos": 1, "max_new_tokens": 2} | options)


small_lm = tl.LanguageModel(11, 8, 2, 1, 16)


WRONG_CALLS = [
    (lambda: tl.Encoder(8, 2, -1, 16), ValueError, "n_layers must be at least 0, got -1"),
    (lambda: tl.Encoder(8, 2, 1.0, 16), TypeError, "n_layers must be an integer, got 1.0"),
    (lambda: tl.Decoder(8, 3, 1, 16), ValueError, "n_heads must divide d_model, got n_heads 3 and d_model 8"),
    (lambda: tl.Decoder(8, 2, 1, 16, 1.5), ValueError, "dropout must be a probability from 0 to 1, got 1.5"),
    (
        lambda: tl.Encoder.from_torch(nn.Linear(2, 2)),
        TypeError,
        "module must be a torch.nn.TransformerEncoder, got Linear",
    ),
    (
        lambda: tl.Decoder.from_torch(nn.TransformerDecoderLayer(8, 2)),
        TypeError,
        "module must be a torch.nn.TransformerDecoder, got TransformerDecoderLayer",
    ),
    (
        lambda: tl.Encoder.from_torch(
            nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 1, nn.RMSNorm(8), enable_nested_tensor=False)
        ),
        TypeError,
        "module must be a torch.nn.LayerNorm, got RMSNorm",
    ),
    (
        lambda: tl.Transformer.from_torch(small),
        TypeError,
        "module must be a torch.nn.Transformer, got Transformer",
    ),
    (lambda: tl.TokenEmbedding(0, 8), ValueError, "vocab_size must be at least 1, got 0"),
    (lambda: tl.TokenEmbedding(11, 8.0), TypeError, "d_model must be an integer, got 8.0"),
    (lambda: tl.TokenEmbedding(11, 8, 3), ValueError, "dropout must be a probability from 0 to 1, got 3"),
    (lambda: small.src_embedding(src, start=-1), ValueError, "start must be at least 0, got -1"),
    (lambda: small.src_embedding(src, start=0.5), TypeError, "start must be an integer, got 0.5"),
    (lambda: small.src_embedding(src[0, 0]), ValueError, "src must have shape (..., seq), got ()"),
    (lambda: tl.Transformer(0, 13, 8, 2, 1, 16), ValueError, "src_vocab must be at least 1, got 0"),
    (lambda: tl.Transformer(11, True, 8, 2, 1, 16), TypeError, "tgt_vocab must be an integer, got True"),
    (
        lambda: tl.Transformer(11, 13, 8, 2, 1, 16, share_embeddings=True),
        ValueError,
        "share_embeddings requires one vocabulary, got src_vocab 11 and tgt_vocab 13",
    ),
    (lambda: small([[1]], tgt), TypeError, TOKENS_ERROR.format("src", "list")),
    (lambda: small(src.float(), tgt), TypeError, TOKENS_ERROR.format("src", "torch.float32")),
    (lambda: small(src, tgt.bool()), TypeError, TOKENS_ERROR.format("tgt", "torch.bool")),
    (lambda: small(src + 11, tgt), ValueError, "src must be from 0 to src_vocab - 1, which is 10, got 11"),
    (lambda: small(src, tgt - 1), ValueError, "tgt must be from 0 to tgt_vocab - 1, which is 12, got -1"),
    (lambda: small(src, tgt + 13), ValueError, "tgt must be from 0 to tgt_vocab - 1, which is 12, got 13"),
    (
        lambda: small(src.to("meta"), tgt),
        ValueError,
        "src must be on the device of the module's weights, cpu, got meta",
    ),
    (
        lambda: small(src, tgt, token_mask[..., :4]),
        ValueError,
        MASK_SHAPE_ERROR.format("src_mask", "5, 5", (2, 1, 1, 4), "-1 (k_len)", 5, 4),
    ),
    (
        lambda: small(src, tgt, token_mask[:, 0, 0]),
        ValueError,
        MASK_SHAPE_ERROR.format("src_mask", "5, 5", (2, 5), "-2 (q_len)", 5, 2),
    ),
    (
        lambda: small(src, tgt, None, token_mask),
        ValueError,
        MASK_SHAPE_ERROR.format("tgt_mask", "4, 4", (2, 1, 1, 5), "-1 (k_len)", 4, 5),
    ),
    (lambda: small(src, tgt, None, [True]), TypeError, "tgt_mask must be a tensor of bool, got list"),
    (
        lambda: small(src, tgt, None, token_mask[..., :4].float()),
        TypeError,
        f"tgt_mask {MASK_DTYPE_ERROR.format('float32')}",
    ),
    (
        lambda: small(src, tgt, None, token_mask[..., :4].byte()),
        TypeError,
        f"tgt_mask {MASK_DTYPE_ERROR.format('uint8')}",
    ),
    (
        lambda: small(src, tgt, token_mask.float()),
        TypeError,
        f"src_mask {MASK_DTYPE_ERROR.format('float32')}",
    ),
    (
        lambda: small(src, tgt[:1].expand(3, 4)),
        ValueError,
        "src and tgt must share batch, their first axis, got (2, 5) and (3, 4)",
    ),
    (lambda: generate_small(src[0]), ValueError, "src must have shape (batch, src_len), got (5,)"),
    (lambda: generate_small(bos=True), TypeError, "bos must be an integer, got True"),
    (lambda: generate_small(bos=-1), ValueError, "bos must be at least 0, got -1"),
    (lambda: generate_small(bos=13), ValueError, "bos must be below tgt_vocab, 13, got 13"),
    (lambda: generate_small(eos=20), ValueError, "eos must be below tgt_vocab, 13, got 20"),
    (lambda: generate_small(eos=2.0), TypeError, "eos must be an integer, got 2.0"),
    (lambda: generate_small(max_new_tokens=-1), ValueError, "max_new_tokens must be at least 0, got -1"),
    (lambda: generate_small(temperature=-0.5), ValueError, "temperature must be a number, 0 or more, got -0.5"),
    (lambda: generate_small(temperature=math.nan), ValueError, "temperature must be a number, 0 or more, got nan"),
    (lambda: generate_small(temperature="1"), ValueError, "temperature must be a number, 0 or more, got '1'"),
    (lambda: generate_small(src + 11), ValueError, "src must be from 0 to src_vocab - 1, which is 10, got 11"),
    (lambda: tl.LanguageModel(0, 8, 2, 1, 16), ValueError, "vocab_size must be at least 1, got 0"),
    (lambda: tl.LanguageModel(11, 8, 3, 1, 16), ValueError, "n_heads must divide d_model, got n_heads 3 and d_model 8"),
    (lambda: small_lm([1]), TypeError, TOKENS_ERROR.format("tokens", "list")),
    (lambda: small_lm(src + 11), ValueError, "tokens must be from 0 to vocab_size - 1, which is 10, got 11"),
    (lambda: small_lm.generate(src.float(), 1), TypeError, TOKENS_ERROR.format("tokens", "torch.float32")),
    (
        lambda: small_lm.generate(src[0], 1),
        ValueError,
        "tokens must have shape (batch, seq), seq at least 1, got (5,)",
    ),
    (
        lambda: small_lm.generate(src[:, :0], 1),
        ValueError,
        "tokens must have shape (batch, seq), seq at least 1, got (2, 0)",
    ),
    (
        lambda: tl.LanguageModel(11, 8, 2, 1, 16, positions="learned"),
        ValueError,
        "positions must be one of sinusoidal, rotary, got 'learned'",
    ),
    (
        lambda: tl.LanguageModel(11, 8, 2, 1, 16, positions=None),
        ValueError,
        "positions must be one of sinusoidal, rotary, got None",
    ),
    (
        lambda: tl.LanguageModel(11, 8, 2, 1, 16, rotate=tl.rotary),
        TypeError,
        "rotate must be passed as positions=, got rotate",
    ),
    (
        lambda: tl.Transformer(11, 13, 8, 2, 1, 16, n_kv_heads=3),
        ValueError,
        "n_kv_heads must divide n_heads, got n_kv_heads 3 and n_heads 2",
    ),
    (lambda: tl.Encoder(8, 2, 1, 16, norm="batch"), ValueError, "norm must be one of layer, rms, got 'batch'"),
    (lambda: small_lm.generate(src, -1), ValueError, "max_new_tokens must be at least 0, got -1"),
    (lambda: small_lm.generate(src, 1.5), TypeError, "max_new_tokens must be an integer, got 1.5"),
    (
        lambda: small_lm.generate(src, 1, temperature=-1),
        ValueError,
        "temperature must be a number, 0 or more, got -1",
    ),
    (lambda: small_lm.generate(src, 1, top_k=0), ValueError, "top_k must be at least 1, got 0"),
    (lambda: small_lm.generate(src, 1, top_k=True), TypeError, "top_k must be an integer, got True"),
    (lambda: small_lm.generate(src, 1, stop=3), TypeError, "stop must be a sequence of tokens, got 3"),
    (
        lambda: small_lm.generate(src, 1, stop=[11]),
        ValueError,
        "stop must hold tokens from 0 to vocab_size - 1, which is 10, got [11]",
    ),
    (
        lambda: small_lm.generate(src, 1, stop=["."]),
        ValueError,
        "stop must hold tokens from 0 to vocab_size - 1, which is 10, got ['.']",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG_CALLS)
def test_transformer_errors_name_the_argument(call, error, text):
    raises(call, error, text)
