"""The next token, chosen by temperature, top-k, top-p and a number from 0 to 1."""

import math

import torch

from ..exercise import exercise, family


def divide_by_temperature(logits, temperature):
    """Divide the scores by the temperature."""
    return logits / temperature


def likeliest_tokens(scores, top_k):
    """Keep the top_k highest scores, sorted; return their probabilities and the numbers of their tokens."""
    scores, order = scores.sort(descending=True, stable=True)
    return scores[:top_k].softmax(-1), order[:top_k]


def top_p_count(p, top_p):
    """Count how many of the likeliest tokens are needed until their probabilities add up to top_p."""
    return int((p.cumsum(-1) - p < top_p).sum())


def drawn_place(p, draw):
    """Find the token that the number falls on: the first token whose running sum, divided by the total, is above the
    number."""
    shares = p.cumsum(-1) / p.sum()
    return min(int((shares <= draw).sum()), len(p) - 1)


@exercise(
    inputs=lambda draw, vocab=23: (2 * draw(vocab), 4.0, 20, 0.95, 0.83),
    axes={"logits": "vocab"},
    hints=(
        "Three tokens have the probabilities 0.6, 0.3 and 0.1, and `top_p` is 0.8. Which of these tokens can be "
        "drawn, and with which probabilities? Which token is returned if `draw` is 0.7?",
        "Sort the scores first, and the token numbers with them: then each step keeps the front of the row. A token "
        "stays if the sum of the probabilities before it is below `top_p`. Divide the remaining probabilities by their "
        "sum, compute the running sums, and count how many of these sums are not above `draw`.",
        "`scores, order = (logits / …).sort(descending=True, stable=True)`, `p = scores[:top_k].softmax(…)`, "
        "`n = ((p.cumsum(…) - p) < …).sum()`, `shares = p[:n].cumsum(…) / …`, `place = (shares <= …).sum()`, and "
        "`order[…]`",
    ),
)
def next_token(
    logits,
    temperature,
    top_k,
    top_p,
    draw,
    *,
    scores=divide_by_temperature,
    first=likeliest_tokens,
    count=top_p_count,
    place=drawn_place,
):
    """Return the number of the likeliest token at temperature 0, and otherwise that of the token that ``draw``, from 0
    to 1, selects."""
    if temperature == 0:
        return int(logits.argmax())
    p, order = first(scores(logits, temperature), top_k)
    p = p[: count(p, top_p)]
    return int(order[place(p, draw)])


def _random_scores(draw, vocab=9):
    return 1.5 * draw(vocab)


next_token.example("number 0", draw=0.0, plain=True)
next_token.example("number 0.4", draw=0.4, plain=True)
next_token.example("number 0.97", draw=0.97, plain=True)
next_token.example("number 0.9999", draw=0.9999, plain=True)
next_token.example("no cut", lambda draw: (_random_scores(draw), 1.5, None, 1.0, 0.9), plain=True)
next_token.example("number 0.6 without a cut", lambda draw: (_random_scores(draw), 0.8, None, 1.0, 0.6), plain=True)
next_token.example("top_k alone", lambda draw: (_random_scores(draw), 1.5, 4, 1.0, 0.93), plain=True)
next_token.example("number 0.6 with top_k of 3", lambda draw: (_random_scores(draw), 1.8, 3, 1.0, 0.6), plain=True)
next_token.example("top_p alone", lambda draw: (_random_scores(draw), 1.5, None, 0.75, 0.97), plain=True)
next_token.example("number 0.7 with top_p of 0.5", lambda draw: (_random_scores(draw), 2.0, None, 0.5, 0.7), plain=True)
next_token.example("both cuts", lambda draw: (_random_scores(draw), 2.5, 5, 0.8, 0.95), plain=True)
next_token.example("a low temperature", lambda draw: (_random_scores(draw), 0.3, 6, 0.95, 0.99), plain=True)
next_token.example("a high temperature", lambda draw: (_random_scores(draw), 5.0, 7, 0.6, 0.88), plain=True)
next_token.example("the task's three tokens", torch.tensor([0.6, 0.3, 0.1]).log(), 1.0, None, 0.8, 0.7, plain=True)
next_token.example("two tokens", torch.tensor([3.0, 1.0]), 1.0, None, 1.0, 0.6, plain=True)
next_token.example("temperature 0", temperature=0, draw=0.99)
next_token.example("top_k of 1", top_k=1, draw=0.99)
next_token.example("top_k as large as the vocabulary", lambda draw: (_random_scores(draw), 1.5, 9, 0.7, 0.9))
next_token.example("top_k larger than the vocabulary", lambda draw: (_random_scores(draw), 1.5, 50, 1.0, 0.9))
next_token.example("top_p below the best probability", top_p=0.01, draw=0.99)
next_token.example("four equal scores", torch.zeros(4), 1.0, None, 0.5, 0.5)
next_token.example("four equal scores, number 0.9", torch.zeros(4), 1.0, None, 0.5, 0.9)
next_token.example("equal scores where top_k cuts", torch.tensor([0.0, 2.0, 0.0, 0.0]), 1.0, 2, 1.0, 0.999)
next_token.example("equal highest scores at temperature 0", torch.tensor([1.0, 3.0, 3.0]), 0, None, 1.0, 0.9)
next_token.example("scores in the hundreds", torch.tensor([300.0, -250.0, 299.0]), 0.5, None, 1.0, 0.9)
# In float32 this number is 1.
next_token.example("the largest number below 1", torch.zeros(4), 1.0, None, 1.0, math.nextafter(1, 0))
next_token.example("a vocabulary of one", torch.tensor([-2.0]), 1.0, 1, 1.0, 0.5)


@next_token.right
class RightAnswers:
    def by_hiding(logits, temperature, top_k, top_p, draw):
        if temperature == 0:
            return logits.argmax().item()
        scores, order = torch.sort(logits / temperature, descending=True, stable=True)
        if top_k is not None:
            scores[top_k:] = -math.inf
        before = scores.softmax(0).cumsum(0).roll(1)
        before[0] = 0
        scores[before >= top_p] = -math.inf
        shares = scores.softmax(0).cumsum(0)
        last = int(scores.isfinite().sum()) - 1
        place = torch.searchsorted(shares, torch.tensor(draw, dtype=shares.dtype, device=shares.device), right=True)
        return order[min(int(place), last)].item()

    def token_by_token(logits, temperature, top_k, top_p, draw):
        scores = logits.tolist()
        order = sorted(range(len(scores)), key=lambda token: (-scores[token], token))
        if temperature == 0:
            return order[0]
        order = order[:top_k]
        weights = [math.exp((scores[token] - scores[order[0]]) / temperature) for token in order]
        kept, total = 0, 0.0
        while kept < len(order) and total < top_p * sum(weights) - 1e-12:
            total += weights[kept]
            kept += 1
        running_sum = 0.0
        for token, weight in zip(order[:kept], weights):
            running_sum += weight
            if running_sum > draw * total:
                return token
        return order[kept - 1]

    def as_a_tensor(logits, temperature, top_k, top_p, draw):
        if temperature == 0:
            return logits.argmax()
        p, order = (logits.double() / temperature).softmax(-1).sort(descending=True, stable=True)
        p, order = p[:top_k] / p[:top_k].sum(), order[:top_k]
        kept = p * (p.cumsum(-1) - p < top_p - 1e-12)
        place = torch.argmax((kept.cumsum(-1) > draw * kept.sum()).int())
        return order[place]


@next_token.wrong(stage="scores")
class Scores:
    def multiplied(logits, temperature):
        """You multiply the scores by the temperature. A high temperature then sharpens the probabilities instead of
        flattening them: which operation makes differences smaller as the temperature grows?"""
        return logits * temperature

    def temperature_without_effect(logits, temperature):
        """The temperature has an effect only if it is 0. Do you never use the temperature, or add it to the scores, or
        divide *probabilities* by it and then by their sum? Divide the scores by the temperature: before which step?"""
        return logits

    def softmax_twice(logits, temperature):
        """The softmax runs twice: you divide *probabilities* by the temperature and apply a softmax to them. Nearly all
        tokens then become equally likely. You need only one softmax: what is its input?"""
        return logits.softmax(-1) / temperature

    def by_the_root(logits, temperature):
        """You divide by the square root of the temperature. Divide the scores by the temperature itself."""
        return logits / math.sqrt(temperature)


@next_token.wrong(stage="first")
class First:
    def top_k_not_read(scores, top_k):
        """`top_k` has no effect: {the temperature is right, but} tokens beyond the `top_k` likeliest can still be
        drawn. Where do you cut them off?"""
        return likeliest_tokens(scores, None)

    def one_too_many(scores, top_k):
        """Top-k keeps one token too many. With `top_k=1`, only the likeliest token stays. Is your limit the
        sorted score at index `top_k`, where indices count from 0?"""
        return likeliest_tokens(scores, top_k and top_k + 1)

    def one_too_few(scores, top_k):
        """Top-k keeps one token too few. With `top_k` of 2, two tokens stay: do you also hide the second token?"""
        return likeliest_tokens(scores, top_k and max(top_k - 1, 1))

    def least_likely(scores, top_k):
        """You keep the *least* likely tokens, or begin with them: `sort` puts the lowest score first unless you pass
        `descending=True`."""
        scores, order = scores.sort(stable=True)
        return scores[:top_k].softmax(-1), order[:top_k]

    def cut_off_with_zeros(scores, top_k):
        """The tokens that top-k cuts off get a score of 0, which is not a small score: the softmax turns it into e⁰, so
        these tokens can still be drawn. Which score has a probability of 0?"""
        p, order = scores.sort(descending=True, stable=True)
        if top_k is not None:
            p = torch.cat([p[:top_k], torch.zeros_like(p[top_k:])])
        return p.softmax(-1), order

    def top_p_of_the_whole_vocabulary(scores, top_k):
        """Top-p adds up probabilities of the whole vocabulary: either top-p comes before top-k, or you do not divide
        the probabilities that top-k keeps by their sum. The order is temperature, top-k, top-p: apply the softmax to
        the scores that top-k keeps, so that their probabilities add up to 1."""
        p, order = scores.softmax(-1).sort(descending=True, stable=True)
        return p[:top_k], order[:top_k]

    def token_numbers_forgotten(scores, top_k):
        """You return a *place* in the sorted row, not the number of the token at that place. The second result of
        `sort` holds the numbers of the tokens."""
        p = likeliest_tokens(scores, top_k)[0]
        return p, torch.arange(len(p))


@next_token.wrong(stage="count")
class Count:
    def top_p_not_read(p, top_p):
        """`top_p` has no effect: {temperature and top-k are right, but} tokens that come after the sum has reached
        `top_p` can still be drawn."""
        return len(p)

    @family(
        edge_lost=lambda p, top_p: max(int((p.cumsum(-1) <= top_p).sum()), 1),
        edge_lost_below=lambda p, top_p: max(int((p.cumsum(-1) < top_p).sum()), 1),
    )
    def edge_lost(kept, p, top_p):
        """Top-p drops the token with which the sum reaches `top_p`. This token stays: top-p keeps the smallest number
        of tokens whose probabilities add up to *at least* `top_p`. Compare the sum *before* a token with `top_p`, not
        the sum that includes the token."""
        return kept(p, top_p)

    def kept_after_equality(p, top_p):
        """Top-p keeps one token too many where the sum is exactly `top_p`: the sum has reached `top_p`, so no further
        token stays. Compare the sum before a token with `<`, not with `<=`."""
        return int((p.cumsum(-1) - p <= top_p).sum())

    def one_more(p, top_p):
        """Top-p keeps one token too many: the sum has already reached `top_p` with the previous token. Do you count the
        tokens before which the sum is below `top_p`, and then add 1?"""
        return min(int((p.cumsum(-1) - p < top_p).sum()) + 1, len(p))

    def own_probability(p, top_p):
        """You compare each token's *own* probability with `top_p`. Top-p compares sums: the likeliest tokens stay until
        their sum reaches `top_p`."""
        return len(p) if top_p == 1 else max(int((p >= top_p).sum()), 1)

    def own_probability_beyond(p, top_p):
        """You keep the tokens whose own probability is at least 1 − `top_p`. Top-p compares sums: the likeliest tokens
        stay until their sum reaches `top_p`."""
        return max(int((p >= 1 - top_p).sum()), 1)

    def fraction_of_the_best(p, top_p):
        """You keep the tokens whose probability is at least `top_p` times the highest. That is *min-p*. Top-p compares
        sums: the likeliest tokens stay until their sum reaches `top_p`."""
        return len(p) if top_p == 1 else int((p >= top_p * p[0]).sum())

    def fraction_of_the_best_always(p, top_p):
        """You keep the tokens whose probability is at least `top_p` times the highest, even if `top_p` is 1. That is
        *min-p*. Top-p compares sums: the likeliest tokens stay until their sum reaches `top_p`."""
        return int((p >= top_p * p[0]).sum())

    def share_of_the_tokens(p, top_p):
        """You keep a share of the *number* of tokens. `top_p` is a share of the probability: the likeliest tokens stay
        until their sum reaches `top_p`."""
        return max(math.ceil(top_p * len(p)), 1)

    def what_is_left_over(p, top_p):
        """The likeliest tokens stay only until their sum reaches 1 − `top_p`. `top_p` is the share to keep, not the
        share to cut off: at 0.9, top-p keeps nine tenths."""
        return len(p) if top_p == 1 else top_p_count(p, 1 - top_p)


@next_token.wrong(stage="place")
class Place:
    def not_divided_by_the_sum(p, draw):
        """The kept probabilities do not add up to 1, but you compare the number with their running sums, which end
        below 1: the last kept token also gets the share of the tokens that you cut off. Divide by the sum of the kept
        probabilities."""
        return min(int((p.cumsum(-1) <= draw).sum()), len(p) - 1)

    def not_divided_by_the_sum_and_the_first(p, draw):
        """The kept probabilities do not add up to 1, but you compare the number with their running sums, which end
        below 1: if no sum is above the number, `argmax` finds only `False` and returns 0. Divide by the sum of the kept
        probabilities."""
        return int((p.cumsum(-1) > draw).int().argmax())

    def softmax_of_probabilities(p, draw):
        """You make the kept probabilities add up to 1 with a softmax of *probabilities*, which makes them nearly equal.
        Divide them by their sum, or apply the softmax to the scores."""
        return drawn_place(p.softmax(-1), draw)

    def always_the_best(p, draw):
        """You return the likeliest token, whatever `draw` is: that is greedy decoding at every temperature. `draw`
        decides which of the kept tokens you return, each as often as its probability says."""
        return 0

    def one_too_early(p, draw):
        """You return the token before the one that the number falls on: the last token whose running sum is *below* the
        number. With 0.6, 0.3 and 0.1, the number 0.7 is above the first sum and below the second: it falls on the
        second token."""
        return max(drawn_place(p, draw) - 1, 0)

    def one_too_late(p, draw):
        """You return the token after the one that the number falls on. With the probabilities 0.6, 0.3 and 0.1, the
        number 0.2 falls on the first token: how many of the running sums are 0.2 or less?"""
        return min(drawn_place(p, draw) + 1, len(p) - 1)

    def from_the_end(p, draw):
        """You add up from the least likely token, or use 1 − `draw`: the number 0 then draws the last of the kept
        tokens. The likeliest token comes first."""
        return len(p) - 1 - drawn_place(p.flip(-1), draw)

    def one_minus_the_number(p, draw):
        """You compare the running sums with 1 − `draw`: the number 0 then draws the last of the kept tokens. The
        likeliest token comes first."""
        return drawn_place(p, 1 - draw)

    def each_equally_often(p, draw):
        """All kept tokens are drawn equally often: you multiply the number by the number of kept tokens. A likely token
        must have a wider part of the line from 0 to 1 than an unlikely token."""
        return int(draw * len(p))

    def own_probability_compared(p, draw):
        """You compare the number with each token's *own* probability, not with the running sums: where do you add up
        the probabilities?"""
        return min(int((p / p.sum() > draw).sum()), len(p) - 1)


@next_token.wrong(stage="place", alone=True)
class PlaceAlone:
    def number_on_the_edge(p, draw):
        """With a number that is equal to a running sum, you draw the token whose part of the line ends at this sum.
        Each token's part of the line does *not* include its upper end: with four equal tokens, 0.25 falls on the
        second. Use `right=True` in `searchsorted`, or `<=` in a comparison."""
        return min(int((p.cumsum(-1) / p.sum() < draw).sum()), len(p) - 1)

    def past_the_end(p, draw):
        """With a number just below 1, no running sum is above the number, since sums are rounded, and your place is
        past the end of the row. Which token must you return then?"""
        return int((p.cumsum(-1) / p.sum() <= draw).sum())


@next_token.wrong
class WrongAnswers:
    def order_of_the_vocabulary(logits, temperature, top_k, top_p, draw):
        """You add up in the order of the vocabulary, by the tokens' numbers. {The cut is right, and each token has the
        right probability; but} the task says that the likeliest token comes first, so that the number 0 draws it."""
        if temperature == 0:
            return int(logits.argmax())
        p, order = likeliest_tokens(logits / temperature, top_k)
        n = top_p_count(p, top_p)
        p, order = p[:n], order[:n]
        by_number = order.argsort()
        return int(order[by_number[drawn_place(p[by_number], draw)]])

    def temperature_last(logits, temperature, top_k, top_p, draw):
        """The temperature comes last: top-p has already cut by the probabilities of temperature 1. Some programs use
        this order (llama.cpp by default); the task's order is temperature, top-k, top-p."""
        if temperature == 0:
            return int(logits.argmax())
        p, order = likeliest_tokens(logits, top_k)
        n = top_p_count(p, top_p)
        return int(order[drawn_place((logits[order[:n]] / temperature).softmax(-1), draw)])

    def probabilities_divided(logits, temperature, top_k, top_p, draw):
        """You divide the *probabilities* by the temperature, after the softmax, so top-p cuts at a different place, and
        the probabilities do not become flatter. Divide the scores by the temperature, before the softmax."""
        if temperature == 0:
            return int(logits.argmax())
        p, order = likeliest_tokens(logits, top_k)
        p = p / temperature
        p = p[: top_p_count(p, top_p)]
        return int(order[drawn_place(p, draw)])

    def divided_by_top_p(logits, temperature, top_k, top_p, draw):
        """You divide the kept probabilities by `top_p`, but their sum is usually larger: the token with which the sum
        reaches `top_p` keeps its whole probability. Divide by the sum of the kept probabilities."""
        if temperature == 0:
            return int(logits.argmax())
        p, order = likeliest_tokens(logits / temperature, top_k)
        p = p[: top_p_count(p, top_p)]
        return int(order[min(int((p.cumsum(-1) / top_p <= draw).sum()), len(p) - 1)])

    def none_means_one(logits, temperature, top_k, top_p, draw):
        """With `top_k=None` you keep a single token. `None` keeps all tokens: does your code treat `None` as 1?"""
        return next_token.reference(logits, temperature, 1 if top_k is None else top_k, top_p, draw)

    def smallest_at_zero(logits, temperature, top_k, top_p, draw):
        """At temperature 0 you return token 0, or the token with the lowest score. Greedy decoding chooses the token
        with the highest score: `argmax`."""
        return 0 if temperature == 0 else next_token.reference(logits, temperature, top_k, top_p, draw)

    def score_for_token(logits, temperature, top_k, top_p, draw):
        """You return a score or a probability, but the exercise asks for the token's *number*. `argmax` and the second
        result of `sort` and `topk` are numbers of tokens; `max` and the first result are scores."""
        return logits[next_token.reference(logits, temperature, top_k, top_p, draw)].item()

    @family(
        none_for_top_k=lambda scores, top_k: scores.topk(top_k),
        none_for_top_k_as_k=lambda scores, top_k: torch.topk(scores, k=top_k),
        none_for_top_k_smaller=lambda scores, top_k: scores.topk(min(top_k, len(scores))),
    )
    def none_for_top_k(kept, logits, temperature, top_k, top_p, draw):
        """`top_k` can be `None`, which keeps all tokens, but `topk` or `min` needs a number. Which number keeps all
        tokens?"""
        if temperature == 0:
            return int(logits.argmax())
        scores, order = kept(logits / temperature, top_k)
        p = scores.softmax(-1)
        p = p[: top_p_count(p, top_p)]
        return int(order[drawn_place(p, draw)])

    def k_beyond_the_vocabulary(logits, temperature, top_k, top_p, draw):
        """`top_k` can be larger than the vocabulary, and `topk` then raises an error. A slice raises none: what does
        `[:50]` return for a row of nine?"""
        if temperature == 0:
            return int(logits.argmax())
        scores, order = (logits / temperature).topk(len(logits) if top_k is None else top_k)
        p = scores.softmax(-1)
        p = p[: top_p_count(p, top_p)]
        return int(order[drawn_place(p, draw)])

    def ties_kept(logits, temperature, top_k, top_p, draw):
        """If several tokens have the lowest score that top-k keeps, you keep all of them, so more than `top_k` tokens
        can be drawn. The task says that among equal scores the lower token number comes first: sort, and cut the
        row."""
        if temperature == 0:
            return int(logits.argmax())
        scores, order = (logits / temperature).sort(descending=True, stable=True)
        if top_k is not None:
            edge_score = scores[min(top_k, len(scores)) - 1]
            scores, order = scores[scores >= edge_score], order[scores >= edge_score]
        p = scores.softmax(-1)
        p = p[: top_p_count(p, top_p)]
        return int(order[drawn_place(p, draw)])

    def top_p_only_without_top_k(logits, temperature, top_k, top_p, draw):
        """When `top_k` is a number, `top_p` has no effect: an `elif` tries only one of the two cuts. When both are set,
        apply both, top-k first."""
        return next_token.reference(logits, temperature, top_k, top_p if top_k is None else 1.0, draw)

    def top_k_only_without_top_p(logits, temperature, top_k, top_p, draw):
        """When `top_p` is below 1, `top_k` has no effect: an `elif` tries only one of the two cuts. When both are set,
        apply both, top-k first."""
        return next_token.reference(logits, temperature, top_k if top_p == 1 else None, top_p, draw)

    def both_cut_off_with_zeros(logits, temperature, top_k, top_p, draw):
        """The tokens that you cut off get a score of 0, which is not a small score: the softmax turns it into e⁰, so
        these tokens can still be drawn. Which score has a probability of 0?"""
        if temperature == 0:
            return int(logits.argmax())
        scores, order = (logits / temperature).sort(descending=True, stable=True)
        if top_k is not None:
            scores = torch.cat([scores[:top_k], torch.zeros_like(scores[top_k:])])
        p = scores.softmax(-1)
        p = scores.masked_fill(p.cumsum(-1) - p >= top_p, 0).softmax(-1)
        return int(order[drawn_place(p, draw)])


@next_token.mistake(recognizes=lambda probe, got, expected: probe.arguments[1] == 0)
def temperature_zero_divides(logits, temperature, top_k, top_p, draw):
    """Your function is wrong only at temperature 0. Do you treat temperature 0 separately, before you divide by it? At
    temperature 0 the token with the highest score is chosen, and among equal scores the one with the lowest number."""
    p, order = likeliest_tokens(logits / temperature, top_k)
    p = p[: top_p_count(p, top_p)]
    return int(order[drawn_place(p, draw)])
