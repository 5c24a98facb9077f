"""Find the mistake: a program that lets a model write."""

import torch

from ..exercise import exercise


class _Model:
    """Some language model: its scores depend on all tokens up to each place."""

    def __init__(self, table):
        self.table = table

    def __call__(self, tokens):
        seen = self.table[tokens].cumsum(dim=-2) * torch.arange(1, tokens.shape[-1] + 1, device=tokens.device)[:, None]
        return seen.sin() + 0.5 * self.table[tokens].cos()


def _text(draw, seq=4, vocab=9, max_new_tokens=6):
    model = _Model(2 * draw(vocab, vocab))
    tokens = torch.randint(vocab, (1, seq), generator=draw.generator)
    written = tokens
    for _ in range(max_new_tokens):
        written = torch.cat([written, model(written)[:, -1].argmax(-1, keepdim=True)], dim=1)
    new = written[0, seq:].tolist()
    stop = next((token for token in new[2:] if token not in new[:2]), -1)  # it writes at least two, if it can
    return model, tokens, max_new_tokens, stop


def best(scores):
    """Take the token of the highest score after the last one."""
    return scores[:, -1].argmax(dim=-1, keepdim=True)


@exercise(
    inputs=_text,
    axes={"tokens": "1 seq", "return": "1 new"},
    hints=(
        "The scores have the shape (1, seq, vocab). Over which of these axes are the tokens that could come next?",
        "A softmax over the wrong axis changes which score is the highest. And follow `stop`: where does the loop look "
        "at it?",
        "`token = model(…)[:, -1].argmax(…)`, `if token == stop: …`, and return what follows the first `seq` tokens",
    ),
)
def mend_writing(model, tokens, max_new_tokens, stop, *, choice=best):
    """Return what the model writes after ``tokens``, at most so many and none from ``stop`` on: (1, new)."""
    seq = tokens.shape[1]
    for _ in range(max_new_tokens):
        token = choice(model(tokens))
        if int(token) == stop:
            break
        tokens = torch.cat([tokens, token], dim=1)
    return tokens[:, seq:]


@mend_writing.probe(plain=True)
def no_stop(draw):
    """a model that never writes the stop token"""
    model, tokens, max_new_tokens, _ = _text(draw)
    return model, tokens, max_new_tokens, -1


@mend_writing.probe(plain=True)
def at_once(draw):
    """a model that writes the stop token at once"""
    model, tokens, max_new_tokens, _ = _text(draw)
    return model, tokens, max_new_tokens, int(best(model(tokens)))


@mend_writing.equivalent
def by_a_list(model, tokens, max_new_tokens, stop):
    written = []
    while len(written) < max_new_tokens:
        new = torch.tensor([written], dtype=tokens.dtype, device=tokens.device)
        token = model(torch.cat([tokens, new], dim=1))[0, -1].argmax().item()
        if token == stop:
            break
        written.append(token)
    return torch.tensor([written], dtype=tokens.dtype, device=tokens.device)


@mend_writing.equivalent
def by_probabilities(model, tokens, max_new_tokens, stop):
    before = tokens.size(1)
    for _ in range(max_new_tokens):
        token = model(tokens).softmax(dim=-1)[:, -1].argmax(-1)[:, None]
        if token.eq(stop).all():
            return tokens[:, before:]
        tokens = torch.cat((tokens, token), 1)
    return tokens[:, before:]


@mend_writing.mistake
def as_given(model, tokens, max_new_tokens, stop):
    """This is the program as it was given, or one that does the same. It has two faults, and each shows without the
    other: write down the shape of the scores, and follow the argument `stop`."""
    seq = tokens.shape[1]
    for _ in range(max_new_tokens):
        tokens = torch.cat([tokens, best(model(tokens).softmax(dim=1))], dim=1)
    return tokens[:, seq:]


@mend_writing.mistake
def never_stops(model, tokens, max_new_tokens, stop):
    """The right token is chosen each time, and the model goes on writing after the stop token. Where does the loop look
    at `stop`?"""
    return mend_writing.reference(model, tokens, max_new_tokens, None)


@mend_writing.mistake(stage="choice")
def softmax_over_the_places(scores):
    """Your softmax runs over the places of the text. The tokens that could come next are on the last axis: what does
    your program compare?"""
    return best(scores.softmax(dim=1))


@mend_writing.mistake(stage="choice")
def after_the_first_token(scores):
    """You read the scores after the *first* token. What comes next is said after the last one."""
    return scores[:, 0].argmax(dim=-1, keepdim=True)


@mend_writing.mistake(stage="choice")
def lowest(scores):
    """You take the token of the lowest score. A high score means likely: which one is the model's choice?"""
    return scores[:, -1].argmin(dim=-1, keepdim=True)


@mend_writing.mistake(stage="choice")
def best_of_all_places(scores):
    """You take the highest score of all places. Only the scores after the last token say what comes next."""
    return scores.amax(dim=1).argmax(dim=-1, keepdim=True)


@mend_writing.mistake(stage="choice")
def one_place_too_early(scores):
    """You read the scores one place too early: they say which token the last one should have been."""
    return scores[:, max(scores.shape[1] - 2, 0)].argmax(dim=-1, keepdim=True)


@mend_writing.mistake
def stop_token_returned(model, tokens, max_new_tokens, stop):
    """You return the stop token as well. It is a sign for the program: leave the loop before it is put to the text."""
    seq = tokens.shape[1]
    for _ in range(max_new_tokens):
        tokens = torch.cat([tokens, best(model(tokens))], dim=1)
        if int(tokens[0, -1]) == stop:
            break
    return tokens[:, seq:]


@mend_writing.mistake
def prompt_returned(model, tokens, max_new_tokens, stop):
    """You return the prompt as well. Asked for is what the model has written after it: where does the prompt end?"""
    return torch.cat([tokens, mend_writing.reference(model, tokens, max_new_tokens, stop)], dim=1)


@mend_writing.mistake
def one_too_many(model, tokens, max_new_tokens, stop):
    """The model writes one token more than `max_new_tokens`. How often does your loop run?"""
    return mend_writing.reference(model, tokens, max_new_tokens + 1, stop)


@mend_writing.mistake
def one_too_few(model, tokens, max_new_tokens, stop):
    """The model writes one token less than `max_new_tokens`. How often does your loop run?"""
    return mend_writing.reference(model, tokens, max_new_tokens - 1, stop)


@mend_writing.mistake
def only_the_last_token_read(model, tokens, max_new_tokens, stop):
    """The model is given the newest token alone, and knows nothing of the text before it. Without a cache it needs all
    of it, each time."""
    last, written = tokens[:, -1:], tokens[:, :0]
    for _ in range(max_new_tokens):
        last = best(model(last))
        if int(last) == stop:
            break
        written = torch.cat([written, last], dim=1)
    return written


@mend_writing.mistake
def same_scores_every_time(model, tokens, max_new_tokens, stop):
    """The model is asked once, before the loop: each step takes its token from the same scores. What has changed after
    a step, and who must read it?"""
    token = best(model(tokens))
    return tokens[:, :0] if int(token) == stop else token.expand(-1, max_new_tokens)


@mend_writing.mistake
def nothing_without_a_stop(model, tokens, max_new_tokens, stop):
    """Your function returns `None` when the stop token never comes: then the loop ends after `max_new_tokens`, and no
    `return` follows. Which lines are reached when the loop has run to its end?"""
    written = mend_writing.reference(model, tokens, max_new_tokens, stop)
    return written if written.shape[1] < max_new_tokens else None


@mend_writing.mistake
def returned_in_the_loop(model, tokens, max_new_tokens, stop):
    """The model writes one token, and that is all. A `return` that stands inside the loop does this: it ends the
    function in the first round. How far may it be indented to wait for all of them?"""
    return mend_writing.reference(model, tokens, 1, stop)


@mend_writing.mistake
def returned_only_in_the_loop(model, tokens, max_new_tokens, stop):
    """The model writes one token, and that is all; and where the stop token comes at once, `None` is returned. The only
    `return` stands inside the loop: it ends the function in the first round, and after the loop there is none. How far
    must it be indented?"""
    written = mend_writing.reference(model, tokens, 1, stop)
    return written if written.shape[1] else None


@mend_writing.mistake
def without_the_batch_axis(model, tokens, max_new_tokens, stop):
    """The tokens are right, and they are a plain row, (new,). What comes in has an axis for the batch, of size 1, and
    what you return must have it, too: (1, new). Which of your steps removes it?"""
    return mend_writing.reference(model, tokens, max_new_tokens, stop)[0]


@mend_writing.mistake
def row_made_of_a_list(model, tokens, max_new_tokens, stop):
    """The tokens are right, and they are a plain row, (new,), without the axis of the batch. `torch.tensor` makes such
    a row of a list of numbers, and of an empty list one of floats. What must you give it for the shape (1, new), and
    which `dtype` do tokens have?"""
    return torch.tensor(mend_writing.reference(model, tokens, max_new_tokens, stop)[0].tolist(), device=tokens.device)


@mend_writing.mistake(stage="choice")
def token_without_an_axis(scores):
    """The new token has the shape (1,), and the text has (1, seq): `cat` joins only tensors with equally many axes.
    `argmax` removes the axis it looks along. Which argument keeps it?"""
    return scores[:, -1].argmax(dim=-1)
