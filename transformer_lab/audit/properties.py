"""What every Transformer of its kind must satisfy: each property is a function that asks one question of a `Trial`.

A property that does not hold raises `Fails` with the smallest example; one that cannot be asked raises `NotTried` and
says why. To add one, write a function with `@asks(name)`.
"""

import copy
import itertools

import torch
import torch.nn.functional as F
from torch import nn

from .stages import first_difference
from .trial import Fails, NotTried, Wrong, as_output, first_line, louder, number

PROPERTIES = {}  # by name, in the order of the card
NEEDS = {}  # what each of them needs: "equal" outputs of equal inputs, "outputs", or "nothing"


def asks(name, needs="equal"):
    """Enter a property under its name."""

    def enter(function):
        PROPERTIES[name], NEEDS[name] = function, needs
        return function

    return enter


# One input, and its copies


@asks("twice the same", needs="outputs")
def twice(t):
    """Does the same input give the same output again, in evaluation mode?"""
    t.same(t.run(t.x), t.run(t.x), "the same input again, in evaluation mode")


@asks("the input is left alone", needs="outputs")
def untouched(t):
    """Does the forward pass leave its input as it was?"""
    x = t.other(t.x)  # not `x` itself, which the model may have overwritten already
    before = x.clone()
    t.run(x)
    if not torch.equal(x, before):
        raise Fails(f"the forward pass wrote into its input at position {first(x != before)[1]}")


@asks("a copy is on its own", needs="outputs")
def on_its_own(t):
    """Does a copy of the model, as for a moving average, use its own parameters alone?"""
    if t.uncopyable.startswith("a copy"):
        raise Fails(t.uncopyable)
    t.need_copy()


@asks("rows apart")
def rows(t):
    """Does a sentence give the same output whatever else is in its batch, and alone?"""
    pair = torch.cat([t.x, t.draw(2, t.length)])
    other = torch.cat([t.x, t.draw(2, t.length)])
    t.same(t.run(other)[:1], t.run(pair)[:1], "sentences 1 and 2 replaced: sentence 0")
    t.same(t.run(pair)[:1], t.run(t.x), "sentence 0 in a batch of 3 and alone")
    last = t.run(pair.flip(0))[-1:]
    t.same(last, t.run(t.x), "a sentence at the end of a batch of 3 and alone")


# Who moves when one token is replaced


@asks("the past does not move")
def past(t):
    """Does an output stay when a later token is replaced?"""
    t.need_causal()
    m = t.moves()
    leaks = (t.distance() < 0) & (m > t.tolerance * t.size)
    if leaks.any():
        j, i = first(leaks)
        pairs = t.length * (t.length - 1) // 2
        raise Fails(
            f"token {j} changed: output {i} moved by {number(m[j, i])}; {int(leaks.sum())} of {pairs} pairs leak"
            + leak_pattern(leaks, (t.distance() > 0) & (m > t.silence * t.size))
        )


def leak_pattern(leaks, heard):
    """What the pairs that leak have in common, as a question: (j, i), the later token j and the output i."""
    n = len(leaks)
    places = torch.arange(n)
    ahead = places[:, None] - places
    if not heard.any():
        return ", and no token reaches a later output: is the mask the wrong way round?"
    if leaks.sum() == n * (n - 1) // 2:
        return ": does a mask arrive, or is something computed over the whole sequence?"
    if torch.equal(leaks, (ahead > 0) & (ahead <= (far := int(ahead[leaks].max())))):
        return f", those up to {far} ahead: does the triangle begin on the right diagonal?"
    for size in range(2, n):
        if torch.equal(leaks, (ahead > 0) & (places[:, None] // size == places // size)):
            return f", those inside blocks of {size}: is the mask made of blocks?"
    return ""


@asks("every token is heard")
def heard(t):
    """Does every output move when a token that it may see is replaced?"""
    t.need_per_token()
    m, distance = t.moves(), t.distance()
    should = {"causal": distance >= 0, "bidirectional": distance == distance, "local": distance == 0}[t.kind]
    if t.window:
        should = should & (distance.abs() <= (t.n_layers or 1) * (t.window - 1))
    deaf = should & ~(m > t.silence * t.size)
    if deaf.any():
        j, i = first(deaf)
        raise Fails(f"token {j} changed: output {i} did not move ({int(deaf.sum())} of {int(should.sum())} pairs)")
    moved = (distance != 0) & (m > t.tolerance * t.size)
    if t.kind == "local" and moved.any():
        j, i = first(moved)
        raise Fails(f"token {j} changed: output {i} moved by {number(m[j, i])}, where each token is computed alone")


@asks("a prefix gives the same")
def prefix(t):
    """Are the outputs of the first tokens the same when the later ones are not there?"""
    t.need_causal()
    t.need_length(t.length - 1)
    full = t.run(t.x)
    for n in range(1, t.length):
        said = f"the first {n} tokens" if n > 1 else "the first token"
        t.same(t.run(t.x[:, :n]), full[:, :n], f"{said} of {t.length} alone")


@asks("order is seen")
def order(t):
    """Does the last output move when two earlier neighbours change places?"""
    if t.kind == "local" or t.window == 1:
        raise NotTried("each token is computed alone")
    a, b = t.length - 3, t.length - 2
    x = t.x.clone()
    x[:, a] = t.other(x[:, b])
    swapped = x.clone()
    swapped[:, [a, b]] = x[:, [b, a]]
    if float((t.run(x) - t.run(swapped))[:, -1].abs().max()) <= t.silence * t.size:
        raise Fails(f"tokens {a} and {b} changed places: the last output did not move")


@asks("the future, with loud weights")
def loud_future(t):
    """Is a later token still hidden when the scores are enormous, so that a finite mask is undercut?"""
    t.need_causal()
    if ((t.distance() < 0) & (t.moves() > t.tolerance * t.size)).any():
        raise NotTried("the past moves already")
    loud = t.changed(louder(3000.0))
    m = t.moves(model=loud)
    if not m.isfinite().all():
        raise NotTried("the outputs of such weights are not finite")
    leaks = (t.distance() < 0) & (m > t.tolerance * float(t.run(t.x, loud).std()))
    if leaks.any():
        j, i = first(leaks)
        raise Fails(f"weights times 3000, token {j} changed: output {i} moved: is a hidden score a finite number?")


@asks("the window")
def window(t):
    """Does an output hear as far back as the windows of all layers reach, and no further?"""
    if t.window is None:
        raise NotTried("pass `window=` and `n_layers=`")
    if t.n_layers is None:
        raise NotTried("pass `n_layers=`: a window in each of several layers reaches further")
    t.need_per_token()
    reach = t.n_layers * (t.window - 1)
    t.need_length(reach + 4)
    x = t.draw(1, reach + 4)
    heard_pairs = (t.moves(x) > t.silence * t.size).nonzero()
    far = int((heard_pairs[:, 1] - heard_pairs[:, 0]).max())
    if far != reach:
        raise Fails(
            f"the farthest token heard is {far}{' or more' if far == reach + 3 else ''} back; "
            f"a window of {t.window} in {t.n_layers} layer{'s' * (t.n_layers > 1)} reaches {reach}"
        )


# The same sentence, computed in a batch, in parts, in a row with others


def padded_batch(t, side):
    """Two sentences, the second three tokens shorter and padded: (batch 2, seq), where they are real, the second."""
    keep = torch.ones(2, t.length, dtype=torch.bool, device=t.device)
    real = slice(0, t.length - 3) if side == "right" else slice(3, None)
    keep[1] = False
    keep[1, real] = True
    sentence = t.draw(1, t.length - 3)
    x = t.padding_like(keep, t.pad)
    x[0], x[1, real] = t.x[0], sentence[0]
    return x, keep, sentence, real


def padding_changes_nothing(t, side, outputs):
    """Compare ``outputs`` of a padded sentence with those of the sentence alone; or, where the model takes one length
    only, with those beside other padding, if it does not find the padding by its number."""
    x, keep, sentence, real = padded_batch(t, side)
    outputs = real if outputs is None else outputs
    got = t.padded(x, keep)[1:, outputs]
    try:
        t.need_length(t.length - 3)
    except NotTried as reason:
        if torch.equal(t.padded(x, torch.ones_like(keep))[1:, outputs], got):
            raise
        instead = t.padding_like(keep, t.pad + 1 if t.n_tokens is None or t.pad + 1 < t.n_tokens else t.pad - 1)
        instead = torch.where(keep if x.ndim == 2 else keep[..., None], x, instead)
        t.same(t.padded(instead, keep)[1:, outputs], got, "a different number as padding")
        return f"with two numbers as padding, and not compared with the sentence alone: {reason}"
    alone = t.padded(sentence, torch.ones_like(keep[1:, real]))
    t.same(got, alone, f"{t.length - 3} tokens, with 3 pads on the {side} and alone")


def padding(side):
    def alone_and_padded(t):
        """Does a sentence give the same output alone and in a batch, with padding?"""
        t.adapter("padded")
        t.need_per_token()
        return padding_changes_nothing(t, side, None)

    return alone_and_padded


for side in ("right", "left"):
    asks(f"alone = in a padded batch, {side}")(padding(side))


@asks("finite where nothing is seen")
def finite(t):
    """Are outputs and gradients finite when a row of the batch is nothing but padding?"""
    t.adapter("padded")
    keep = torch.ones(3, t.length, dtype=torch.bool, device=t.device)
    keep[1, :3] = keep[2] = False
    x = torch.where(keep if t.x.ndim == 2 else keep[..., None], t.draw(3, t.length), t.padding_like(keep, t.pad))
    out = as_output(t.adapter("padded")(t.model, x, keep), "padded", x)
    bad = ~out.isfinite().all(-1)
    if bad.any():
        row, place = first(bad)
        raise Fails(f"{int(bad.sum())} outputs are not finite, the first at position {place} of row {row}")
    parameters = [p for p in t.model.parameters() if p.requires_grad]
    if parameters and out.requires_grad:
        kept = out[keep] if bad.shape == keep.shape else out[:2]
        gradients = torch.autograd.grad(kept.pow(2).sum(), parameters, allow_unused=True)
        if not all(g is None or g.isfinite().all() for g in gradients):
            raise Fails("the outputs are finite, and the gradients of those of real tokens are not")


@asks("with a cache = without")
def cached(t):
    """Do tokens that come in parts, with a cache, give what they give together?"""
    step, full = t.adapter("step"), t.run(t.x)
    n = t.length
    for sizes in ([1] * n, [n - 3, 1, 1, 1], [3, n - 4, 1]):
        cache, outputs = None, []
        with torch.no_grad():
            for part in t.x.split(sizes, 1):
                pair = step(t.model, part, cache)
                if not isinstance(pair, tuple) or len(pair) != 2:
                    raise Wrong("step must return (output, cache), two things in a tuple")
                outputs.append(as_output(pair[0], "step", part)[:, -part.shape[1] :])
                cache = pair[1]
        said = "one at a time" if len(set(sizes)) == 1 else f"in parts of {', '.join(map(str, sizes))}"
        t.same(torch.cat(outputs, 1), full, f"the tokens {said}, with a cache")


@asks("packed = apart")
def packed(t):
    """Do two documents in one row give what each gives alone?"""
    run = t.adapter("packed")
    t.need_length(4)
    a, b = t.draw(1, 4), t.draw(1, t.length - 4)
    documents = torch.tensor([[0] * 4 + [1] * (t.length - 4)], device=t.device)
    row = torch.cat([a, b], 1)
    with torch.no_grad():
        out = as_output(run(t.model, row, documents), "packed", row)
    t.same(out[:, :4], t.run(a), "the first document in the row and alone")
    t.same(out[:, 4:], t.run(b), "the second document in the row and alone")


# Modes, precision


def without_noise(model):
    """Set every number that is called dropout, jitter or noise to 0."""
    for module in model.modules():
        for name, value in vars(module).items():
            noisy = name == "p" or any(word in name for word in ("drop", "jitter", "noise"))
            if noisy and isinstance(value, float) and 0 < value < 1:
                setattr(module, name, 0.0)


@asks("train() = eval() without dropout")
def modes(t):
    """Is training mode the same as evaluation mode when all dropout is 0?"""
    training = t.changed(without_noise).train()
    out = t.run(t.x, training)
    if not torch.equal(out, t.run(t.x, training)):
        raise NotTried("in training mode the outputs are random, also when all dropout is 0")
    t.same(out, t.run(t.x, t.changed(without_noise)), "train() and eval(), all dropout 0")


@asks("training noise survives an evaluation", needs="outputs")
def noise(t):
    """Is dropout as strong after an evaluation as before it?"""
    model = t.fresh().train()

    def strength():
        return sum(float((t.run(t.x, model) - t.run(t.x, model)).abs().mean()) for _ in range(6)) / 6

    before = strength()
    if before <= t.tolerance * t.size:
        raise NotTried("there is no noise in training mode")
    t.run(t.x, model.eval())
    model.train()
    after = strength()
    if not 0.4 < after / before < 2.5:
        raise Fails(f"two passes differ by {number(before)} before an evaluation, by {number(after)} after it")


@asks("half precision, near and far")
def precision(t):
    """Is bfloat16 as exact at the end of a long sequence as near its beginning?"""
    length = t.options.long
    if not length:
        raise NotTried("pass `long=`, such as 600: a length that the model takes")
    t.need_per_token()
    t.need_length(length)

    def picky_and_rounded(model):
        louder(3.0)(model.float())  # attention is picky, so that a wrong position matters
        for parameter in model.parameters():
            parameter.data = parameter.data.bfloat16().float()  # what is stored is the same for both

    x = t.draw(1, length)
    full, half = (t.changed(picky_and_rounded).to(dtype) for dtype in (torch.float32, torch.bfloat16))
    vectors = t.n_tokens is None
    x = x.bfloat16() if vectors else x
    try:
        rounded = t.run(x, half).float()
    except Exception as error:
        raise NotTried(f"the model does not run in bfloat16: {first_line(error)}") from None
    off = (rounded - t.run(x.float() if vectors else x, full)).abs().mean(-1)[0]
    near, far = float(off[8:72].mean()), float(off[-64:].mean())
    if not far < 4 * near:
        raise Fails(f"bfloat16 is off by {number(near)} near the beginning and by {number(far)} at {length} tokens")
    return f"off by {number(near)} near the beginning, by {number(far)} at {length} tokens"


# What the loss asks for


@asks("the loss asks for the next token")
def next_token(t):
    """Is the loss the mean, over all tokens but the first, of what the token before predicts for them?"""
    loss = t.adapter("loss")
    t.need_tokens()
    x, model = t.draw(3, t.length), t.changed(louder(5.0))
    with torch.no_grad():
        value = loss(model, x)
        scores = t.run(x, model).log_softmax(-1)
    if not isinstance(value, torch.Tensor) or value.numel() != 1:
        raise Wrong(f"loss must return one number, a tensor of shape (), got {type(value).__name__}")
    got, n = float(value), t.length
    ahead = {s: -float(scores[:, : n - s].gather(-1, x[:, s:, None]).mean()) for s in (0, 1, 2)}
    close = [s for s, value in ahead.items() if abs(value - got) <= 1e-4 * abs(got)]
    if len(close) > 1:
        raise NotTried("the losses of this model are too alike to tell")
    if 1 not in close:
        found = f"; {number(got / ahead[1])} times that" if not close else f"; {SHIFTS[close[0]]}"
        raise Fails(f"the loss is {got:.4f}, that of the next token {ahead[1]:.4f}{found}")


SHIFTS = {
    0: "it is that of the token itself: are the labels not shifted?",
    2: "it is that of the token after the next: are the labels shifted twice?",
}


@asks("small batches = one big")
def accumulated(t):
    """Does accumulating small batches give the gradient of one batch that holds them all?"""
    run = t.adapter("accumulate")
    t.need_tokens()
    x = t.draw(4, t.length)
    labels = x.clone()
    labels[1:, 3:] = -100  # one long answer, three short ones: a mean of means is another number
    gradients = []
    for big in (True, False):
        model = t.fresh().eval()
        if big:
            F.cross_entropy(t.forward(x, model)[:, :-1].flatten(0, 1), labels[:, 1:].flatten()).backward()
        else:
            run(model, [(x[:1], labels[:1]), (x[1:], labels[1:])])
        found = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
        gradients.append(torch.cat([gradient.flatten() for gradient in found]))
    if float((gradients[1] - gradients[0]).norm()) > 10 * t.tolerance * float(gradients[0].norm()):
        ratio, cosine = gradients[1].norm() / gradients[0].norm(), F.cosine_similarity(*gradients, dim=0)
        raise Fails(f"the gradient differs: its norm times {float(ratio):.3f}, its cosine {float(cosine):.3f}")


@asks("every real token is asked for", needs="nothing")
def labels(t):
    """Do the labels hold every token of a sentence, its end among them, and no padding?"""
    sentences = [[5, 6, 7, t.pad], [8, 9, t.pad]]
    pair = t.adapter("collate")([list(sentence) for sentence in sentences])
    if not isinstance(pair, tuple) or len(pair) != 2 or not all(isinstance(part, torch.Tensor) for part in pair):
        raise Wrong("collate must return (tokens, labels), two tensors in a tuple")
    for row, (sentence, asked) in enumerate(zip(sentences, pair[1].tolist())):
        asked = [label for label in asked if label != -100]
        if asked not in (sentence, sentence[1:]):
            raise Fails(f"sentence {row} is {sentence}, its labels are {asked}")


# The weights


@asks("the same as the original")
def reference(t):
    """Does the model give what a reference gives, and where do they part?"""
    original = t.options.reference
    if original is None:
        raise NotTried("pass `reference=`, a module that is called as the model is")
    if not isinstance(original, nn.Module):
        raise Wrong(f"reference must be a module that is called as the model is, got {type(original).__name__}")
    original = copy.deepcopy(original).eval().to(t.dtype)
    try:
        t.same(t.run(t.x), t.run(t.x, original), "the reference")
    except Fails as fails:
        raise Fails(f"{fails}; {first_difference(t, original)}") from None


@asks("identity without branches")
def identity(t):
    """Is the layer the identity when the last maps of its branches are 0?"""
    branches = t.options.branches
    if not branches:
        raise NotTried("pass `branches=`, the last module of each branch of a pre-norm layer")
    names = [name for name, module in t.options.model.named_modules() if any(module is b for b in branches)]
    if len(names) != len(branches):
        raise Wrong("branches must be modules of the model, such as [layer.linear2]")
    if t.n_tokens is not None:
        raise NotTried("tokens are no vectors: audit a layer, with `d_model=`")

    def silence(model):
        for name in names:
            for parameter in model.get_submodule(name).parameters():
                parameter.data.zero_()

    t.same(t.run(t.x, t.changed(silence)), t.x, "the last maps of all branches are 0, and the output is not the input")


@asks("layers begin different", needs="nothing")
def begin_different(t):
    """Do the layers of a list begin with different numbers?"""
    tried = False
    for layers in t.model.modules():
        if not isinstance(layers, (nn.ModuleList, nn.Sequential)):
            continue
        for a, b in itertools.combinations(range(min(len(layers), 8)), 2):
            if type(layers[a]) is not type(layers[b]):
                continue
            for p, q in zip(layers[a].parameters(), layers[b].parameters()):
                if p.ndim >= 2 and p.shape == q.shape and p is not q and float(p.detach().float().std()) > 0:
                    tried = True
                    if torch.equal(p, q):
                        raise Fails(f"layers {a} and {b} of {type(layers[a]).__name__} hold the same numbers")
    if not tried:
        raise NotTried("there is no list of layers")


@asks("every parameter learns")
def learns(t):
    """Does every parameter get a gradient that is not 0?"""
    if not any(p.requires_grad for p in t.options.model.parameters()):
        raise NotTried("the model has no parameters that learn")
    for batch in (2, 64):  # a mixture may choose an expert for few tokens only
        model = t.fresh().eval()
        out = t.forward(t.draw(batch, t.length), model)
        (out * torch.randn(out.shape, dtype=torch.float32).to(out)).sum().backward()
        idle = [
            name for name, p in model.named_parameters() if p.requires_grad and (p.grad is None or not p.grad.any())
        ]
        if not idle:
            return
    more = f" and {len(idle) - 3} more" if len(idle) > 3 else ""
    raise Fails(f"no gradient: {', '.join(f'`{name}`' for name in idle[:3])}{more}")


@asks("saved and loaded")
def loaded(t):
    """Do the weights, put into another copy, give the same outputs?"""
    if not t.model.state_dict():
        raise NotTried("the model has no parameters")

    def scramble(model):
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                tensor.normal_()

    other = t.changed(scramble)
    other.load_state_dict(t.model.state_dict())
    t.same(t.run(t.x, other), t.run(t.x), "the weights in another copy")


# Where the outputs are not one per token: an encoder and a decoder with a fixed target, or one vector of a sentence


def need_source(t):
    if t.is_per_token:
        raise NotTried("one output per token; for an encoder–decoder, audit it as a function of its source as well")


@asks("padding of the source changes nothing")
def source_padding(t):
    """Does the output stay when a source is padded?"""
    need_source(t)
    t.adapter("padded")
    return padding_changes_nothing(t, "right", None if t.is_per_token is None else slice(None))


@asks("every source token is heard")
def source_heard(t):
    """Does every output move when a token of the source is replaced?"""
    need_source(t)
    deaf = ~(t.moves() > t.silence * t.size)
    if deaf.any():
        j, i = first(deaf)
        raise Fails(f"source token {j} changed: output {i} did not move ({int(deaf.sum())} of {deaf.numel()} pairs)")


def first(places):
    """The first place that is True, as numbers."""
    return places.nonzero()[0].tolist()
