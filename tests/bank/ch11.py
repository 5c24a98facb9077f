"""Answers to assignment 11."""

import torch
import torch.nn.functional as F

from transformer_lab.checks import accumulated, first_leak, influence, label_shift, mend_labels, same_with_cache

from . import right, wrong


def replacement(token):
    return 1 if token == 0 else 0


@wrong(influence, "The replaced tokens stay replaced: no copy is taken, and the argument is changed.")
def _(model, tokens):
    base = model(tokens)
    out = []
    for j in range(tokens.shape[1]):
        tokens[0, j] = replacement(tokens[0, j].item())
        out.append((model(tokens) - base).abs().max(-1).values[0])
    return torch.stack(out)


@wrong(influence, "One copy is taken before the loop, so the replacements add up.")
def _(model, tokens):
    base = model(tokens)
    changed = tokens.clone()
    out = []
    for j in range(tokens.shape[1]):
        changed[0, j] = replacement(changed[0, j].item())
        out.append((model(changed) - base).abs().max(-1).values[0])
    return torch.stack(out)


@wrong(influence, "Stacked along the columns: the table is transposed.")
def _(model, tokens):
    base = model(tokens)
    out = []
    for j in range(tokens.shape[1]):
        changed = tokens.clone()
        changed[0, j] = replacement(tokens[0, j].item())
        out.append((model(changed) - base).abs().max(-1).values[0])
    return torch.stack(out, dim=1)


@wrong(influence, "No absolute value: a feature that falls does not count.")
def _(model, tokens):
    base = model(tokens)
    out = torch.zeros(tokens.shape[1], tokens.shape[1])
    for j in range(tokens.shape[1]):
        changed = tokens.clone()
        changed[0, j] = replacement(tokens[0, j].item())
        out[j] = (model(changed) - base).max(-1).values[0]
    return out


@wrong(influence, "The token is replaced by 0 always, so a 0 stays.")
def _(model, tokens):
    rows = []
    for j in range(tokens.shape[1]):
        changed = tokens.clone()
        changed[0, j] = 0
        rows.append((model(changed) - model(tokens))[0].abs().amax(1))
    return torch.stack(rows)


@wrong(influence, "The differences of the features are added up.")
def _(model, tokens):
    rows = []
    for j in range(tokens.shape[1]):
        changed = tokens.clone()
        changed[0, j] = replacement(tokens[0, j].item())
        rows.append((model(changed) - model(tokens))[0].abs().sum(1))
    return torch.stack(rows)


@wrong(influence, "Only whether an output moved, not how far.")
def _(model, tokens):
    n = tokens.shape[1]
    table = torch.zeros(n, n)
    for j in range(n):
        changed = tokens.clone()
        changed[0, j] = replacement(tokens[0, j].item())
        different = (model(changed) != model(tokens))[0].any(-1)
        table[j][different] = 1.0
    return table


@right(influence)
def _(model, tokens):
    n = tokens.shape[1]
    table = []
    for j in range(n):
        changed = torch.cat([tokens[:, :j], 1 - tokens[:, j : j + 1].clamp(max=1), tokens[:, j + 1 :]], 1)
        table.append((model(changed) - model(tokens)).abs().max(dim=-1)[0])
    return torch.cat(table)


@wrong(first_leak, "The upper triangle is searched, where an earlier token moves a later output.")
def _(table):
    n = len(table)
    for j in range(n):
        for i in range(j + 1, n):
            if table[j, i] > 1e-5 * table.max():
                return j, i
    return None


@wrong(first_leak, "The pair is returned as output and token.")
def _(table):
    n = len(table)
    for j in range(n):
        for i in range(j):
            if table[j, i] > 1e-5 * table.max():
                return i, j
    return None


@wrong(first_leak, "The outer loop runs over the outputs, so the smallest output comes first.")
def _(table):
    n = len(table)
    for i in range(n):
        for j in range(i + 1, n):
            if table[j, i] > 1e-5 * table.max():
                return j, i
    return None


@wrong(first_leak, "The tolerance is absolute.")
def _(table):
    for j in range(len(table)):
        for i in range(j):
            if table[j, i] > 1e-5:
                return j, i


@wrong(first_leak, "Any number above 0 is a leak, rounding as well.")
def _(table):
    below = torch.tril(table, -1).nonzero()
    return None if len(below) == 0 else tuple(below[0].tolist())


@wrong(first_leak, "The largest leak is returned, not the first.")
def _(table):
    below = table.tril(-1)
    if below.max() <= 1e-5 * table.max():
        return None
    place = below.argmax().item()
    return place // len(table), place % len(table)


@wrong(first_leak, "The diagonal counts as a leak.")
def _(table):
    for j in range(len(table)):
        for i in range(j + 1):
            if table[j, i] > 1e-5 * table.max():
                return (j, i)
    return None


@right(first_leak)
def _(table):
    limit = table.max().item() / 100_000
    pairs = [(j, i) for j, row in enumerate(table.tolist()) for i, x in enumerate(row) if i < j and x > limit]
    return min(pairs, default=None)


@wrong(same_with_cache, "Each part gets no cache.")
def _(model, step, tokens, parts):
    outs = []
    for p in torch.split(tokens, parts, 1):
        o, _ = step(p, None)
        outs.append(o)
    return float((torch.cat(outs, 1) - model(tokens)).abs().max())


@wrong(same_with_cache, "The mean of the differences.")
def _(model, step, tokens, parts):
    outs, c = [], None
    for p in torch.split(tokens, parts, 1):
        o, c = step(p, c)
        outs.append(o)
    return float((torch.cat(outs, 1) - model(tokens)).abs().mean())


@wrong(same_with_cache, "No absolute value.")
def _(model, step, tokens, parts):
    outs, c = [], None
    for p in torch.split(tokens, parts, 1):
        o, c = step(p, c)
        outs.append(o)
    return float((model(tokens) - torch.cat(outs, 1)).max())


@wrong(same_with_cache, "Only the last part is compared.")
def _(model, step, tokens, parts):
    c, start = None, 0
    full = model(tokens)
    for n in parts:
        o, c = step(tokens[:, start : start + n], c)
        gap = (o - full[:, start : start + n]).abs().max()
        start += n
    return gap.item()


@wrong(same_with_cache, "One token at a time, whatever the parts are.")
def _(model, step, tokens, parts):
    outs, c = [], None
    for i in range(tokens.shape[1]):
        o, c = step(tokens[:, i : i + 1], c)
        outs.append(o)
    return (torch.cat(outs, dim=1) - model(tokens)).abs().max().item()


@right(same_with_cache)
def _(model, step, tokens, parts):
    worst, c, start = 0.0, None, 0
    full = model(tokens)
    for n in parts:
        o, c = step(tokens[:, start : start + n], c)
        worst = max(worst, (o - full[:, start : start + n]).abs().max().item())
        start += n
    return worst


@wrong(label_shift, "The shift goes the other way.")
def _(logits, tokens, loss):
    lp = logits.log_softmax(-1)
    found = []
    for s in range(3):
        a, b = lp[:, s:], tokens[:, : tokens.shape[1] - s]
        found.append(-a.gather(2, b[..., None]).mean().item())
    return min(range(3), key=lambda s: abs(found[s] - loss))


@wrong(label_shift, "The smallest loss is taken, and the given one is not used.")
def _(logits, tokens, loss):
    n = tokens.shape[1]
    found = [F.cross_entropy(logits[:, : n - s].transpose(1, 2), tokens[:, s:]).item() for s in range(3)]
    return found.index(min(found))


@wrong(label_shift, "The tokens are rolled, so the last places meet the first tokens.")
def _(logits, tokens, loss):
    found = [F.cross_entropy(logits.flatten(0, 1), tokens.roll(-s, 1).flatten()).item() for s in range(3)]
    return min(range(3), key=lambda s: abs(found[s] - loss))


@wrong(label_shift, "Counted from 1.")
def _(logits, tokens, loss):
    n = tokens.shape[1]
    found = [F.cross_entropy(logits[:, : n - s].transpose(1, 2), tokens[:, s:]).item() for s in range(3)]
    return 1 + min(range(3), key=lambda s: abs(found[s] - loss))


@wrong(label_shift, "Sums in place of means.")
def _(logits, tokens, loss):
    n = tokens.shape[1]
    found = [
        F.cross_entropy(logits[:, : n - s].transpose(1, 2), tokens[:, s:], reduction="sum").item() for s in range(3)
    ]
    return min(range(3), key=lambda s: abs(found[s] - loss))


@right(label_shift)
def _(logits, tokens, loss):
    best, n = None, tokens.shape[1]
    for s in (0, 1, 2):
        p = logits[:, : n - s].softmax(-1)
        total = -torch.log(p.gather(2, tokens[:, s:, None])).mean()
        gap = abs(total.item() - loss)
        if best is None or gap < best[0]:
            best = gap, s
    return best[1]


@wrong(accumulated, "The mean of the batches' means, and NaN where a batch asks for nothing.")
def _(model, batches):
    losses = [F.cross_entropy(model(t)[:, :-1].transpose(1, 2), y[:, 1:]) for t, y in batches]
    return torch.stack(losses).mean()


@wrong(accumulated, "Sums are divided by all places, hidden ones among them.")
def _(model, batches):
    total = sum(F.cross_entropy(model(t)[:, :-1].transpose(1, 2), y[:, 1:], reduction="sum") for t, y in batches)
    return total / sum(y[:, 1:].numel() for _, y in batches)


@wrong(accumulated, "The labels are not shifted.")
def _(model, batches):
    total, count = 0, 0
    for t, y in batches:
        total = total + F.cross_entropy(model(t).transpose(1, 2), y, reduction="sum")
        count += int((y != -100).sum())
    return total / count


@wrong(accumulated, "The sums are never divided.")
def _(model, batches):
    total = 0
    for t, y in batches:
        total = total + F.cross_entropy(model(t)[:, :-1].transpose(1, 2), y[:, 1:], reduction="sum")
    return total


@wrong(accumulated, "The loss is turned into a number, so no gradient flows.")
def _(model, batches):
    total, count = 0.0, 0
    for t, y in batches:
        total += F.cross_entropy(model(t)[:, :-1].transpose(1, 2), y[:, 1:], reduction="sum").item()
        count += int((y[:, 1:] != -100).sum())
    return torch.tensor(total / count)


@right(accumulated)
def _(model, batches):
    scores = torch.cat([model(t)[:, :-1].flatten(0, 1) for t, _ in batches])
    wanted = torch.cat([y[:, 1:].flatten() for _, y in batches])
    return F.cross_entropy(scores[wanted >= 0], wanted[wanted >= 0])


@wrong(mend_labels, "The end is still hidden; only the shift is gone.")
def _(tokens, end):
    return torch.where(tokens == end, torch.full_like(tokens, -100), tokens)


@wrong(mend_labels, "The end is kept, and the labels are still shifted.")
def _(tokens, end):
    ends = tokens == end
    labels = tokens.masked_fill(ends & (ends.cumsum(1) > 1), -100)
    return torch.cat([labels[:, 1:], torch.full_like(labels[:, :1], -100)], dim=1)


@wrong(mend_labels, "The last end of a row is kept in place of the first.")
def _(tokens, end):
    labels = tokens.clone()
    for row, old in zip(labels, tokens):
        places = (old == end).nonzero().flatten()
        row[places[:-1]] = -100
    return labels


@wrong(mend_labels, "Nothing is hidden.")
def _(tokens, end):
    return tokens.clone()


@right(mend_labels)
def _(tokens, end):
    labels = tokens.clone()
    for r in range(len(tokens)):
        seen = False
        for c in range(tokens.shape[1]):
            if tokens[r, c] == end:
                if seen:
                    labels[r, c] = -100
                seen = True
    return labels


# A second round, written from the assignment's text alone, before its author had seen the checks of this chapter


@wrong(influence, "Compared with the output of the replacement before, not with the right outputs.")
def _(model, tokens):
    before = model(tokens)
    rows = []
    for j in range(tokens.shape[1]):
        other = tokens.clone()
        other[0, j] = replacement(tokens[0, j].item())
        after = model(other)
        rows.append((after - before)[0].abs().amax(-1))
        before = after
    return torch.stack(rows)


@wrong(influence, "The mean of the differences, not the largest.")
def _(model, tokens):
    right_ones = model(tokens)
    table = []
    for j in range(tokens.shape[1]):
        other = tokens.clone()
        other[:, j] = 1 if tokens[0, j] == 0 else 0
        table.append((model(other) - right_ones).abs().mean(-1).squeeze(0))
    return torch.stack(table)


@wrong(influence, "The axis of the batch stays: (seq, 1, seq).")
def _(model, tokens):
    right_ones = model(tokens)
    table = []
    for j in range(tokens.shape[1]):
        other = tokens.clone()
        other[:, j] = 1 if tokens[0, j] == 0 else 0
        table.append((model(other) - right_ones).abs().amax(-1))
    return torch.stack(table)


@wrong(influence, "The largest over the tokens: a row has features, not outputs.")
def _(model, tokens):
    right_ones = model(tokens)
    table = []
    for j in range(tokens.shape[1]):
        other = tokens.clone()
        other[:, j] = 1 if tokens[0, j] == 0 else 0
        table.append((model(other) - right_ones)[0].abs().amax(0))
    return torch.stack(table)


@wrong(influence, "The token is replaced by the next number.")
def _(model, tokens):
    right_ones = model(tokens)
    table = []
    for j in range(tokens.shape[1]):
        other = tokens.clone()
        other[:, j] += 1
        table.append((model(other) - right_ones)[0].abs().amax(1))
    return torch.stack(table)


@wrong(first_leak, "The limit is a hundred-thousandth of the largest entry below the diagonal.")
def _(table):
    below = table.tril(-1)
    for j in range(len(table)):
        for i in range(j):
            if below[j, i] > 1e-5 * below.max():
                return j, i
    return None


@wrong(first_leak, "The limit is a thousandth of the largest entry.")
def _(table):
    for j in range(len(table)):
        for i in range(j):
            if table[j, i] > 1e-3 * table.max():
                return j, i
    return None


@wrong(first_leak, "The limit is a millionth of the largest entry.")
def _(table):
    for j in range(len(table)):
        for i in range(j):
            if table[j, i] > 1e-6 * table.max():
                return j, i
    return None


@wrong(first_leak, "The mean of the table, not its largest entry, sets the limit.")
def _(table):
    for j in range(len(table)):
        for i in range(j):
            if table[j, i] > 1e-5 * table.mean():
                return j, i
    return None


@wrong(first_leak, "Whether there is a leak, not where.")
def _(table):
    return bool((table.tril(-1) > 1e-5 * table.max()).any())


@wrong(same_with_cache, "Each part is run from the beginning: the tokens before it go in again, beside the cache.")
def _(model, step, tokens, parts):
    outputs, cache, end = [], None, 0
    for n in parts:
        end += n
        output, cache = step(tokens[:, :end], cache)
        outputs.append(output[:, -n:])
    return (torch.cat(outputs, 1) - model(tokens)).abs().max().item()


@wrong(same_with_cache, "Each part is compared with the model on that part alone.")
def _(model, step, tokens, parts):
    worst, cache = 0.0, None
    for piece in tokens.split(parts, dim=1):
        output, cache = step(piece, cache)
        worst = max(worst, (output - model(piece)).abs().max().item())
    return worst


@wrong(same_with_cache, "Only the first part is compared.")
def _(model, step, tokens, parts):
    output, _ = step(tokens[:, : parts[0]], None)
    return (output - model(tokens)[:, : parts[0]]).abs().max().item()


@wrong(same_with_cache, "Yes or no: whether the outputs are close, not how far they are from each other.")
def _(model, step, tokens, parts):
    outputs, cache = [], None
    for piece in tokens.split(parts, dim=1):
        output, cache = step(piece, cache)
        outputs.append(output)
    return torch.allclose(torch.cat(outputs, 1), model(tokens), atol=1e-5)


@wrong(same_with_cache, "The sum of the differences.")
def _(model, step, tokens, parts):
    outputs, cache = [], None
    for piece in tokens.split(parts, dim=1):
        output, cache = step(piece, cache)
        outputs.append(output)
    return float((torch.cat(outputs, 1) - model(tokens)).abs().sum())


@wrong(label_shift, "The shift of the loss that is nearest from below: the difference has no absolute value.")
def _(logits, tokens, loss):
    n = tokens.shape[1]
    found = [F.cross_entropy(logits[:, : n - s].flatten(0, 1), tokens[:, s:].flatten()).item() for s in range(3)]
    return min(range(3), key=lambda s: loss - found[s])


@wrong(label_shift, "Only the shifts 0 and 1 are tried.")
def _(logits, tokens, loss):
    n = tokens.shape[1]
    found = [abs(F.cross_entropy(logits[:, : n - s].flatten(0, 1), tokens[:, s:].flatten()) - loss) for s in (0, 1)]
    return 0 if found[0] < found[1] else 1


@wrong(label_shift, "The softmax is taken twice: its probabilities go into cross_entropy.")
def _(logits, tokens, loss):
    n, p = tokens.shape[1], logits.softmax(-1)
    found = [F.cross_entropy(p[:, : n - s].flatten(0, 1), tokens[:, s:].flatten()).item() for s in range(3)]
    return min(range(3), key=lambda s: abs(found[s] - loss))


@wrong(label_shift, "The three losses are returned, not the shift.")
def _(logits, tokens, loss):
    n = tokens.shape[1]
    return [F.cross_entropy(logits[:, : n - s].flatten(0, 1), tokens[:, s:].flatten()).item() for s in range(3)]


@wrong(label_shift, "Only the first text of the batch is scored.")
def _(logits, tokens, loss):
    n = tokens.shape[1]
    found = [F.cross_entropy(logits[0, : n - s], tokens[0, s:]).item() for s in range(3)]
    return min(range(3), key=lambda s: abs(found[s] - loss))


@wrong(accumulated, "The labels that are asked for are counted before the shift.")
def _(model, batches):
    total, count = 0, 0
    for tokens, labels in batches:
        logits, after = model(tokens)[:, :-1], labels[:, 1:]
        total = total + F.cross_entropy(logits.flatten(0, 1), after.flatten(), reduction="sum")
        count += (labels != -100).sum()
    return total / count


@wrong(accumulated, "The sums are divided by the number of batches.")
def _(model, batches):
    total = 0
    for tokens, labels in batches:
        logits, after = model(tokens)[:, :-1], labels[:, 1:]
        total = total + F.cross_entropy(logits.flatten(0, 1), after.flatten(), reduction="sum")
    return total / len(batches)


@wrong(accumulated, "The shift goes the other way: the scores of a place are asked for the label before it.")
def _(model, batches):
    total, count = 0, 0
    for tokens, labels in batches:
        logits, before = model(tokens)[:, 1:], labels[:, :-1]
        total = total + F.cross_entropy(logits.flatten(0, 1), before.flatten(), reduction="sum")
        count += (before != -100).sum()
    return total / count


@wrong(accumulated, "A batch that asks for nothing counts as a loss of 0 in the mean of the means.")
def _(model, batches):
    total = 0
    for tokens, labels in batches:
        logits, after = model(tokens)[:, :-1], labels[:, 1:]
        asked = (after != -100).sum().clamp(min=1)
        total = total + F.cross_entropy(logits.flatten(0, 1), after.flatten(), reduction="sum") / asked
    return total / len(batches)


@wrong(accumulated, "The model is run without gradients.")
def _(model, batches):
    total, count = 0, 0
    with torch.no_grad():
        for tokens, labels in batches:
            logits, after = model(tokens)[:, :-1], labels[:, 1:]
            total = total + F.cross_entropy(logits.flatten(0, 1), after.flatten(), reduction="sum")
            count += (after != -100).sum()
    return total / count


@wrong(mend_labels, "All ends are hidden, and the labels are shifted to the right.")
def _(tokens, end):
    labels = tokens.masked_fill(tokens == end, -100)
    return torch.cat([torch.full_like(labels[:, :1], -100), labels[:, :-1]], dim=1)


@wrong(mend_labels, "The second end is kept, too: > 2 where > 1 is meant.")
def _(tokens, end):
    ends = tokens == end
    return tokens.masked_fill(ends & (ends.cumsum(1) > 2), -100)


@wrong(mend_labels, "The ends are counted down the batch, not along the row.")
def _(tokens, end):
    ends = tokens == end
    return tokens.masked_fill(ends & (ends.cumsum(0) > 1), -100)


@wrong(mend_labels, "The count of the first row cuts all rows: one length for the whole batch.")
def _(tokens, end):
    labels = tokens.clone()
    length = int((tokens[0] != end).sum())
    labels[:, length + 1 :] = -100
    return labels


@wrong(mend_labels, "The padding is 0, not -100.")
def _(tokens, end):
    ends = tokens == end
    return tokens.masked_fill(ends & (ends.cumsum(1) > 1), 0)
