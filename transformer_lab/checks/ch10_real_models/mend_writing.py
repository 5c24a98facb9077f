"""Find the mistake: a program that lets a model write."""

import torch

from ..exercise import exercise, family, rows_of


class _Model:
    """A language model whose scores at each place depend on all tokens up to that place."""

    def __init__(self, table):
        self.table = table

    def __call__(self, tokens):
        seen = self.table[tokens].cumsum(dim=-2) * torch.arange(1, tokens.shape[-1] + 1, device=tokens.device)[:, None]
        return seen.sin() + 0.5 * self.table[tokens].cos()


def _writing_inputs(draw, seq=4, vocab=9, max_new_tokens=6):
    model = _Model(2 * draw(vocab, vocab))
    tokens = torch.randint(vocab, (1, seq), generator=draw.generator)
    written = tokens
    for _ in range(max_new_tokens):
        written = torch.cat([written, model(written)[:, -1].argmax(-1, keepdim=True)], dim=1)
    new = written[0, seq:].tolist()
    stop = next(
        (token for token in new[2:] if token not in new[:2]), -1
    )  # from the third new token on, the first one that differs from the first two
    return model, tokens, max_new_tokens, stop


def best_token(scores):
    """Return the token with the highest score after the last token of the text."""
    return scores[:, -1].argmax(dim=-1, keepdim=True)


def append(tokens, token):
    return torch.cat([tokens, token], dim=1)


def is_stop(token, text, stop):
    return int(token) == stop


def until_stop(choose, tokens, max_new_tokens, stop, join=append, ends=is_stop):
    """Append the chosen token, until it is the stop token or there are enough tokens."""
    for _ in range(max_new_tokens):
        token = choose(tokens)
        if ends(token, tokens, stop):
            break
        tokens = join(tokens, token)
    return tokens


def new_tokens(text, seq, max_new_tokens):
    """Return what follows the prompt."""
    return text[:, seq:]


@exercise(
    inputs=_writing_inputs,
    axes={"tokens": "1 seq", "return": "1 new"},
    hints=(
        "The scores have the shape (1, seq, vocab). On which of these axes are the tokens that could come next?",
        "A softmax over the wrong axis changes which score is the highest. Then look for `stop`: where does the loop "
        "use this argument?",
        "`token = model(…)[:, -1].argmax(…)`, `if token == stop: …`, and return what follows the first `seq` tokens",
    ),
)
def mend_writing(model, tokens, max_new_tokens, stop, *, choice=best_token, loop=until_stop, returned=new_tokens):
    """Return what the model writes after ``tokens`` and before ``stop``, at most ``max_new_tokens`` tokens; the result
    has shape (1, new)."""
    text = loop(lambda text: choice(model(text)), tokens, max_new_tokens, stop)
    return returned(text, tokens.shape[1], max_new_tokens)


@mend_writing.probe(plain=True)
def no_stop(draw):
    """a model that never writes the stop token"""
    model, tokens, max_new_tokens, _ = _writing_inputs(draw)
    return model, tokens, max_new_tokens, -1


@mend_writing.probe(plain=True)
def stop_at_once(draw):
    """a model that writes the stop token at once"""
    model, tokens, max_new_tokens, _ = _writing_inputs(draw)
    return model, tokens, max_new_tokens, int(best_token(model(tokens)))


@mend_writing.probe(plain=True)
def stop_in_the_prompt(draw):
    """a prompt that holds the stop token"""
    model, tokens, max_new_tokens, stop = _writing_inputs(draw)
    return model, torch.cat([tokens.new_full((1, 1), stop), tokens], dim=1), max_new_tokens, stop


@mend_writing.probe(plain=True)
def stop_at_the_end_of_the_prompt(draw):
    """a prompt that ends in the stop token"""
    model, tokens, max_new_tokens, _ = _writing_inputs(draw)
    return model, tokens, max_new_tokens, int(tokens[0, -1])


mend_writing.example("a prompt of 300 tokens", lambda draw: _writing_inputs(draw, seq=300))


@mend_writing.right
class RightAnswers:
    def by_a_list(model, tokens, max_new_tokens, stop):
        written = []
        while len(written) < max_new_tokens:
            new = torch.tensor([written], dtype=tokens.dtype, device=tokens.device)
            token = model(torch.cat([tokens, new], dim=1))[0, -1].argmax().item()
            if token == stop:
                break
            written.append(token)
        return torch.tensor([written], dtype=tokens.dtype, device=tokens.device)

    def by_probabilities(model, tokens, max_new_tokens, stop):
        n_prompt = tokens.size(1)
        for _ in range(max_new_tokens):
            token = model(tokens).softmax(dim=-1)[:, -1].argmax(-1)[:, None]
            if token.eq(stop).all():
                return tokens[:, n_prompt:]
            tokens = torch.cat((tokens, token), 1)
        return tokens[:, n_prompt:]


@mend_writing.wrong(stage="choice")
class Choice:
    def softmax_over_the_places(scores):
        """Your softmax runs over the positions of the text. The candidates for the next token are on the last axis:
        along which axis must the probabilities sum to one?"""
        return best_token(scores.softmax(dim=1))

    def after_the_first_token(scores):
        """You read the scores after the *first* token. The scores after the last token say which token comes next."""
        return scores[:, 0].argmax(dim=-1, keepdim=True)

    def lowest(scores):
        """You choose the token with the lowest score. A high score means a likely token: which score is the model's
        choice?"""
        return scores[:, -1].argmin(dim=-1, keepdim=True)

    def second_best(scores):
        """You choose the token with the second highest score. The most likely token has the highest score: at which
        index is it in sorted scores?"""
        return scores[:, -1].topk(2).indices[:, 1:]

    def always_token_zero(scores):
        """You choose token 0 each time: all your scores are equal, or NaN, and `argmax` returns the first. A softmax
        over an axis of size 1, such as that of the batch, makes every score 1. On which axis are the tokens that could
        come next?"""
        return scores.softmax(dim=0)[:, -1].argmax(dim=-1, keepdim=True)

    @family(
        best_of_all_places=(torch.amax, "use each token's highest score over all places"),
        mean_of_all_places=(torch.mean, "average the scores over all places, or add them up"),
    )
    def all_places(reduce, scores):
        """You {}. Only the scores after the last token say what comes next."""
        return reduce(scores, dim=1).argmax(dim=-1, keepdim=True)

    @family(
        place_for_the_token=(lambda scores: scores, "score"),
        place_by_probability=(lambda scores: scores.softmax(dim=-1), "probability"),
    )
    def place_chosen(values, scores):
        """You look for the highest {} along the places of the text, and use the number of a place as a token. The
        scores have the shape (1, seq, vocab): on which axis are the tokens that could come next?"""
        return values(scores).argmax(dim=1)[:, -1:]

    def one_place_too_early(scores):
        """You read the scores one place too early: they predict the last token of the text, not the next one."""
        return scores[:, max(scores.shape[1] - 2, 0)].argmax(dim=-1, keepdim=True)

    def index_in_all_scores(scores):
        """Your `argmax` searches the scores of all places at once, so its index counts places and tokens together: it
        is not a token, and soon exceeds the size of the vocabulary. Which place's scores say what comes next?"""
        return scores.argmax().reshape(1, 1)


@mend_writing.wrong(stage="choice", alone=True)
class ChoiceAlone:
    def score_for_the_token(scores):
        """You append the highest score itself, as a whole number. The token is the *index* of the highest score: which
        function returns this index?"""
        return scores[:, -1].amax(dim=-1, keepdim=True).long()

    def score_appended(scores):
        """You append the highest score itself, or its probability, so the text becomes floats, which the model cannot
        look up. The token is the *index* of the highest score: which function returns this index?"""
        return scores[:, -1].amax(dim=-1, keepdim=True)


@mend_writing.wrong(stage="loop")
class Loop:
    def never_stops(choose, tokens, max_new_tokens, stop):
        """You choose the right token each time, but the model goes on writing after the stop token. Where does the loop
        use `stop`?"""
        return until_stop(choose, tokens, max_new_tokens, None)

    def stop_token_returned(choose, tokens, max_new_tokens, stop):
        """You return the stop token as well. The stop token is only a signal for the program: leave the loop before you
        append it."""
        for _ in range(max_new_tokens):
            tokens = torch.cat([tokens, choose(tokens)], dim=1)
            if int(tokens[0, -1]) == stop:
                break
        return tokens

    def stop_looked_for_in_the_prompt(choose, tokens, max_new_tokens, stop):
        """You look for the stop token in the whole text, prompt included, and return it as well. A prompt can hold a
        stop token, as in a chat: compare only the token that you have just chosen, before you append it."""
        for _ in range(max_new_tokens):
            if stop in tokens:
                break
            tokens = torch.cat([tokens, choose(tokens)], dim=1)
        return tokens

    def stop_forgotten_last(choose, tokens, max_new_tokens, stop):
        """The token before the stop token is missing: you cut off one token too many. Does your loop end before the
        stop token is appended? Then there is nothing to cut off."""
        text = until_stop(choose, tokens, max_new_tokens, stop)
        has_stopped = tokens.shape[1] < text.shape[1] < tokens.shape[1] + max_new_tokens
        return text[:, :-1] if has_stopped else text

    def step_compared_with_stop(choose, tokens, max_new_tokens, stop):
        """You compare `stop` with the number of the step. `stop` is a token: compare it with the token that you have
        just chosen."""
        for step in range(max_new_tokens):
            if step == stop:
                break
            tokens = torch.cat([tokens, choose(tokens)], dim=1)
        return tokens

    def one_too_many(choose, tokens, max_new_tokens, stop):
        """The model writes one token more than `max_new_tokens`. How often does your loop run?"""
        return until_stop(choose, tokens, max_new_tokens + 1, stop)

    def one_too_few(choose, tokens, max_new_tokens, stop):
        """If the stop token never comes, your text is one token shorter than `max_new_tokens`. Either the loop ends one
        round too early, or you cut off the last token even if it is not the stop token."""
        return until_stop(choose, tokens, max_new_tokens - 1, stop)

    def prompt_counted(choose, tokens, max_new_tokens, stop):
        """You count the prompt: your loop ends when the *whole* text has `max_new_tokens` tokens. The limit is for the
        *new* tokens: how long is the text when the loop begins?"""
        return until_stop(choose, tokens, max_new_tokens - tokens.shape[1], stop)

    def only_the_last_token_read(choose, tokens, max_new_tokens, stop):
        """The model reads the newest token alone, without the text before it. Without a cache, pass the whole text at
        each step."""
        return until_stop(lambda text: choose(text[:, -1:]), tokens, max_new_tokens, stop)

    def same_scores_every_time(choose, tokens, max_new_tokens, stop):
        """Each step chooses its token from the same scores: you call the model once, or with the prompt each time, or
        you read the scores at the prompt's end. What changes in each step, and does the model read it?"""
        return until_stop(lambda text: choose(tokens), tokens, max_new_tokens, stop)

    def prompt_forgotten(choose, tokens, max_new_tokens, stop):
        """From the second step on, the model reads only the new tokens, without the prompt. It needs the whole text at
        each step: what do you pass?"""
        seq = tokens.shape[1]
        return until_stop(
            lambda text: choose(text[:, seq:] if text.shape[1] > seq else text), tokens, max_new_tokens, stop
        )

    def first_token_dropped(choose, tokens, max_new_tokens, stop):
        """The model reads a window: for each token that you append, you drop the first one. The model needs the whole
        text at each step: which slice do you pass?"""
        seq = tokens.shape[1]
        return until_stop(lambda text: choose(text[:, -seq:]), tokens, max_new_tokens, stop)

    def put_in_front(choose, tokens, max_new_tokens, stop):
        """You put the new token in front of the text, and the model reads it there. A text grows at its end: in which
        order do you pass the two tensors to `cat`?"""
        return until_stop(choose, tokens, max_new_tokens, stop, lambda text, token: torch.cat([token, text], dim=1))


class Joins:
    """Wrong ways to append a token, whether the loop looks for the stop token before it appends or afterwards."""

    def joined_along_the_batch(tokens, token):
        """`cat` joins along axis 0 by default: that is the batch, and the other sizes do not fit. On which axis of (1,
        seq) does the text grow?"""
        return torch.cat([tokens, token])

    def stacked(tokens, token):
        """`stack` joins tensors of equal shape along a new axis, but text and token have different shapes. Which
        function joins them along an axis that they already have?"""
        return torch.stack([tokens, token], dim=1)

    def number_joined(tokens, token):
        """`cat` joins tensors, but you pass a plain number: `.item()` and `int()` turn a token into a number. A number
        is fine for the comparison, but what must you append?"""
        return torch.cat([tokens, int(token)], dim=1)

    def row_joined(tokens, token):
        """The new token has fewer axes than the text, (1, seq), but `cat` only joins tensors with the same number of
        axes. `argmax` removes the axis that it searches, and an index removes another. Which argument of `argmax` keeps
        the axis?"""
        return torch.cat([tokens, token[0]], dim=1)

    def zero_axes_joined(tokens, token):
        """The new token has no axis, but the text has two, (1, seq): `cat` only joins tensors with the same number of
        axes. `argmax` with `dim=-1` and `keepdim=True` keeps the axes; how many axes does a plain number have?"""
        return torch.cat([tokens, token[0, 0]], dim=1)

    def three_axes_joined(tokens, token):
        """The new token has three axes, but the text has two, (1, seq): `cat` only joins tensors with the same number
        of axes. Which of your steps adds an axis that is already there?"""
        return torch.cat([tokens, token[None]], dim=1)

    def brackets_forgotten(tokens, token):
        """`cat` expects its tensors together, as a list or a tuple: it treats a separate second tensor as the axis.
        Which brackets are missing?"""
        return torch.cat(tokens, token, dim=1)

    def append_of_a_list(tokens, token):
        """A tensor has no `append`: it cannot grow. Use a list, or let `cat` make a new, longer tensor, and assign it
        to a name."""
        return tokens.append(token)


@mend_writing.wrong(stage="loop", alone=True)
class LoopAlone:
    def stop_looked_for_in_the_text(choose, tokens, max_new_tokens, stop):
        """After each step you look for the stop token in the whole text, prompt included, and return it as well. A
        prompt can hold a stop token, as in a chat: compare only the token that you have just chosen, before you append
        it."""
        for _ in range(max_new_tokens):
            tokens = torch.cat([tokens, choose(tokens)], dim=1)
            if stop in tokens:
                break
        return tokens

    def nothing_after_a_prompt_with_stop(choose, tokens, max_new_tokens, stop):
        """A prompt that holds the stop token gets no answer: you look for that token in the whole text. Only a stop
        token that the model writes ends the writing."""
        return tokens if stop in tokens else until_stop(choose, tokens, max_new_tokens, stop)

    def stop_tokens_left_out(choose, tokens, max_new_tokens, stop):
        """The stop tokens are gone, but the tokens after the first stop token are still there. The first stop token
        ends the writing: nothing after it belongs to the answer."""
        text = until_stop(choose, tokens, max_new_tokens, None)
        new = text[:, tokens.shape[1] :]
        return torch.cat([tokens, new[new != stop][None]], dim=1)

    def cut_at_the_last_stop(choose, tokens, max_new_tokens, stop):
        """You cut the text at its *last* stop token, but the model may have written several. Writing ends before the
        first stop token: which stop token's index do you use?"""
        text = until_stop(choose, tokens, max_new_tokens, None)
        stops = (text[0, tokens.shape[1] :] == stop).nonzero()
        return text[:, : tokens.shape[1] + int(stops[-1])] if len(stops) else text

    def ends_at_larger_tokens(choose, tokens, max_new_tokens, stop):
        """Your loop ends at every token whose number is `stop` or larger. Numbers of tokens have no order: only `stop`
        itself ends the writing."""
        return until_stop(choose, tokens, max_new_tokens, stop, ends=lambda token, *_: int(token) >= stop)

    def filled_up_with_stops(choose, tokens, max_new_tokens, stop):
        """Your result is padded with stop tokens, like the texts of a batch. Here there is one text, and it ends
        *before* the first stop token: the result can be shorter than `max_new_tokens`."""
        text = until_stop(choose, tokens, max_new_tokens, stop)
        n_missing = tokens.shape[1] + max_new_tokens - text.shape[1]
        return torch.cat([text, text.new_full((1, n_missing), stop)], dim=1)

    def filled_up_with_zeros(choose, tokens, max_new_tokens, stop):
        """Your result is padded with zeros to `max_new_tokens`: a tensor made with `zeros` has this length, however
        much the model writes. 0 is a token too; return only what the model wrote."""
        text = until_stop(choose, tokens, max_new_tokens, stop)
        n_missing = tokens.shape[1] + max_new_tokens - text.shape[1]
        return torch.cat([text, text.new_zeros((1, n_missing))], dim=1)

    def condition_reversed(choose, tokens, max_new_tokens, stop):
        """Your condition is reversed: the loop ends at a token that is *not* the stop token, and continues at the stop
        token. Read the line with `stop` aloud."""
        return until_stop(choose, tokens, max_new_tokens, stop, ends=lambda token, *_: int(token) != stop)

    def ends_at_a_repetition(choose, tokens, max_new_tokens, stop):
        """Your loop ends where the model would write a token twice in a row. Only the token `stop` ends the writing:
        which two numbers do you compare?"""
        return until_stop(
            choose, tokens, max_new_tokens, stop, ends=lambda token, text, _: int(token) == int(text[0, -1])
        )

    def last_token_compared(choose, tokens, max_new_tokens, stop):
        """You compare the last token of the text with `stop` before you choose the new token: the loop ends one step
        late, you return the stop token, and a prompt that ends in the stop token gets no answer. Which token must you
        compare?"""
        for _ in range(max_new_tokens):
            if int(tokens[0, -1]) == stop:
                break
            tokens = torch.cat([tokens, choose(tokens)], dim=1)
        return tokens

    def returned_in_the_loop(choose, tokens, max_new_tokens, stop):
        """The model writes a single token. A `return` or `break` that every round of the loop reaches ends the loop in
        the first round. How far must that line be indented?"""
        return until_stop(choose, tokens, 1, stop)

    def only_the_newest_after_the_prompt(choose, tokens, max_new_tokens, stop):
        """The model reads the prompt once, and from then on the newest token alone, as with a cache. This model has no
        cache: pass the whole text at each step."""
        seq = tokens.shape[1]
        return until_stop(
            lambda text: choose(text if text.shape[1] == seq else text[:, -1:]), tokens, max_new_tokens, stop
        )

    @family(always_10=10, always_20=20, always_50=50, always_100=100)
    def always_so_many(number, choose, tokens, max_new_tokens, stop):
        """Your loop runs {} times, whatever `max_new_tokens` is. The caller decides how much may be written: where must
        you use `max_new_tokens`?"""
        return until_stop(choose, tokens, number, stop)

    @family(always_ends_at_0=0, always_ends_at_1=1, always_ends_at_2=2)
    def always_ends_at(token, choose, tokens, max_new_tokens, stop):
        """Your loop ends at token {}, whatever `stop` is. Models differ in their stop tokens: what is the argument
        `stop` for?"""
        return until_stop(choose, tokens, max_new_tokens, token)

    @family(**rows_of(Joins))
    def joined_after_the_stop(join, choose, tokens, max_new_tokens, stop):
        return until_stop(choose, tokens, max_new_tokens, stop, join)

    @family(**rows_of(Joins, "{}_at_once"))
    def joined_before_the_stop(join, choose, tokens, max_new_tokens, stop):
        return join(tokens, choose(tokens))


@mend_writing.wrong(stage="returned")
class Returned:
    def nothing_without_a_stop(text, seq, max_new_tokens):
        """Your function returns `None` when the stop token never comes: the loop then ends after `max_new_tokens`, and
        no `return` follows. Which lines run after the last round of the loop?"""
        return text[:, seq:] if text.shape[1] < seq + max_new_tokens else None

    def prompt_returned(text, seq, max_new_tokens):
        """You return the prompt as well. The exercise asks for the new tokens alone: where does the prompt end?"""
        return text

    def nothing_new(text, seq, max_new_tokens):
        """You return no token, whatever the model writes. Either the text does not grow, or you measure its length
        after it has grown: where does your program set `seq`, and what does it append?"""
        return text[:, text.shape[1] :]

    def prompt_alone(text, seq, max_new_tokens):
        """You return the prompt, and nothing that the model has written. On which side of the colon does `seq` belong,
        or what do you do with the longer text?"""
        return text[:, :seq]

    def last_of_the_prompt_returned(text, seq, max_new_tokens):
        """You return the last token of the prompt as well. Places are counted from 0: at which place is the first new
        token?"""
        return text[:, seq - 1 :]

    def cut_from_the_end(text, seq, max_new_tokens):
        """You cut as many tokens off the *end* as the prompt has. The prompt is at the beginning: on which side of the
        colon does its length belong?"""
        return text[:, :-seq]

    def column(text, seq, max_new_tokens):
        """The tokens are a column, (new, 1). The input is a row, (1, seq), and the result must be a row too: along
        which axis do you join the tokens?"""
        return text[:, seq:].mT

    @family(
        list_of_numbers=(0, "list", "one", "list, even from an empty one"),
    )
    def as_a_list(row, text, seq, max_new_tokens):
        """You return a {}. The task asks for {} tensor, (1, new), of the same type as the prompt: how do you make a
        tensor from a {}?"""
        return text[row, seq:].tolist()

    def empty_row_of_floats(text, seq, max_new_tokens):
        """{The tokens are right, but} if the model writes no token, your result has floats: `torch.tensor` makes floats
        from an empty list. Which `dtype` do tokens have, whatever is in the list?"""
        return torch.tensor([text[0, seq:].tolist()])

    def nothing_to_join(text, seq, max_new_tokens):
        """If the stop token comes at once, there is nothing to join, and `cat` raises an error for an empty list. The
        result must then have the shape (1, 0): can you begin with a tensor that you already have?"""
        return torch.cat(list(text[:, seq:].split(1, dim=1)) if text.shape[1] > seq else [], dim=1)


@mend_writing.wrong(stage="returned", alone=True)
class ReturnedAlone:
    def nothing_at_a_stop(text, seq, max_new_tokens):
        """Your function returns `None` when the stop token comes: a `return` without a value ends the function there.
        The tokens written before the stop token are the answer."""
        return text[:, seq:] if text.shape[1] == seq + max_new_tokens else None

    def first_new_one_lost(text, seq, max_new_tokens):
        """The first token that the model wrote is missing. Places are counted from 0: at which place is the first new
        token if the prompt has `seq` tokens?"""
        return text[:, seq + 1 :]

    def last_new_one_lost(text, seq, max_new_tokens):
        """The last token that the model wrote is missing, even if no token is a stop token. Do you cut off a token that
        was never appended?"""
        return text[:, seq : max(seq, text.shape[1] - 1)]

    def measured_in_the_loop(text, seq, max_new_tokens):
        """You measure the length of the text in each round of the loop, so you return only what the last round
        appended: one token, or none. When is the text as long as the prompt?"""
        return text[:, text.shape[1] - (text.shape[1] == seq + max_new_tokens) :]

    def only_the_last_new_one(text, seq, max_new_tokens):
        """You return the last token alone. The tokens before it belong to the answer too: how do you collect them?"""
        return text[:, -1:]

    def backwards(text, seq, max_new_tokens):
        """The new tokens are in reverse order: you put each token in front of those before it. At which end does a text
        grow?"""
        return text[:, seq:].flip(1)

    def prompt_in_a_row(text, seq, max_new_tokens):
        """You return the whole text as a plain row, prompt included. The exercise asks for what the model has written
        after the prompt, (1, new): two axes, the first for the batch. Where does the prompt end?"""
        return text[0]

    def sliced_along_the_batch(text, seq, max_new_tokens):
        """Your slice cuts along the first axis, that of the batch. The text is (1, seq): on which axis are the
        tokens?"""
        return text[seq:]

    def row_made_of_a_list(text, seq, max_new_tokens):
        """The tokens are a plain row, (new,), without the axis of the batch. `torch.tensor` makes such a row from a
        list of numbers, and a row of floats from an empty list. What must you pass to it for the shape (1, new), and
        which `dtype` do tokens have?"""
        return torch.tensor(text[0, seq:].tolist())

    def nothing_to_stack(text, seq, max_new_tokens):
        """If the stop token comes at once, there is nothing to join, and `stack` raises an error for an empty list. The
        result must then have the shape (1, 0): can you begin with a tensor that you already have?"""
        return torch.stack(list(text[:, seq:].unbind(1)), dim=1)

    def row_of_nothing_to_join(text, seq, max_new_tokens):
        """You join the tokens in a plain row, (new,), but the exercise asks for the shape (1, new). And if the stop
        token comes at once, there is nothing to join, and `cat` raises an error. Along which axis must you join the
        tokens?"""
        return torch.cat(list(text[0, seq:].split(1)) if text.shape[1] > seq else [])

    def row_of_nothing_to_stack(text, seq, max_new_tokens):
        """You stack the tokens in a plain row, (new,), but the exercise asks for the shape (1, new). And if the stop
        token comes at once, there is nothing to stack, and `stack` raises an error. Which axis is missing?"""
        return torch.stack(list(text[0, seq:].unbind()))

    def column_of_nothing_to_join(text, seq, max_new_tokens):
        """You join the tokens in a column, (new, 1), but the exercise asks for the shape (1, new). And if the stop
        token comes at once, there is nothing to join, and `cat` raises an error. Along which axis must you join the
        tokens?"""
        return torch.cat(list(text[:, seq:].split(1, dim=1)) if text.shape[1] > seq else [])

    def last_max_new_tokens(text, seq, max_new_tokens):
        """You return the last `max_new_tokens` tokens of the text. If the model stops earlier, some of these are tokens
        of the prompt: where does the prompt end?"""
        return text[:, -max_new_tokens:]


@mend_writing.wrong
class WrongAnswers:
    def as_given(model, tokens, max_new_tokens, stop):
        """This is the original program, or an equivalent one. It has two faults, and each of them changes the result
        even without the other: write down the shape of the scores, and follow the argument `stop`."""
        seq = tokens.shape[1]
        for _ in range(max_new_tokens):
            tokens = torch.cat([tokens, best_token(model(tokens).softmax(dim=1))], dim=1)
        return tokens[:, seq:]


@mend_writing.wrong
class ChosenTokens:
    """Mistakes in the choice of the token."""

    def as_given_with_the_prompt(model, tokens, max_new_tokens, stop):
        """The program still has its two faults, the softmax over the places and a loop that never uses `stop`. And now
        you return the prompt as well: where does the prompt end?"""
        return torch.cat([tokens, WrongAnswers.as_given(model, tokens, max_new_tokens, stop)], dim=1)

    def pair_of_max_appended(model, tokens, max_new_tokens, stop):
        """With an axis, `max` returns a pair, the scores and their indices, but `cat` only joins tensors. Which part of
        the pair is the token, and which function returns only that part?"""
        return torch.cat([tokens, model(tokens)[:, -1].max(dim=-1, keepdim=True)], dim=1)

    def all_scores_appended(model, tokens, max_new_tokens, stop):
        """You append all the scores, or probabilities, so the text becomes floats, which the model cannot look up. The
        token is the *index* of the highest score: which function returns this index?"""
        return model(torch.cat([tokens, model(tokens)[:, -1]], dim=1))

    @family(
        token_of_each_place=lambda scores, stop: bool(scores.argmax(dim=-1) == stop),
        token_of_each_place_in_a_row=lambda scores, stop: bool(scores[-1].argmax(dim=-1) == stop),
        token_of_each_place_below=lambda scores, stop: bool(scores.argmax(dim=-1, keepdim=True) == stop),
        token_of_each_place_as_item=lambda scores, stop: scores.argmax(dim=-1).item(),
        token_of_each_place_as_int=lambda scores, stop: int(scores.argmax(dim=-1)),
        many_for_one=lambda scores, stop: bool(scores.argmax(dim=1) == stop),
        many_for_one_in_a_row=lambda scores, stop: bool(scores[:, -1].argmax(dim=0) == stop),
        many_for_one_as_item=lambda scores, stop: scores.argmax(dim=1).item(),
        many_for_one_as_int=lambda scores, stop: int(scores.argmax(dim=1)),
        row_as_int=lambda scores, stop: int(scores[:, -1].argmax(dim=0)),
        places_as_int=lambda scores, stop: int(scores[-1].argmax(dim=-1)),
    )
    def several_tokens(compare, model, tokens, max_new_tokens, stop):
        """You compare several numbers with the stop token, but `if`, `int` and `.item()` need a single number. The
        scores have the shape (1, seq, vocab): which place's scores say what comes next, and over which axis does your
        `argmax` run?"""
        return compare(model(tokens), stop)

    @family(doubled_until_any_stop=torch.any, doubled_until_all_stop=torch.all)
    def doubled(ends, model, tokens, max_new_tokens, stop):
        """You append a token for each place of the text, so the text doubles with every step. Only the scores after the
        last token say what comes next: where do you select that place?"""
        text = tokens
        for _ in range(min(max_new_tokens, 6)):
            chosen = model(text).argmax(dim=-1)
            if ends(chosen == stop):
                break
            text = torch.cat([text, chosen], dim=1)
        return text[:, tokens.shape[1] :]


@mend_writing.wrong
class Endings:
    """Mistakes in the end of the writing."""

    def stop_expected_in_a_list(model, tokens, max_new_tokens, stop):
        """You look for the place of the stop token with `index`, which raises an error if there is none. Perhaps the
        model never writes the stop token: what must you return then?"""
        new = mend_writing.reference(model, tokens, max_new_tokens, None)[0].tolist()
        return torch.tensor([new[: new.index(stop)]], dtype=tokens.dtype)

    def stop_expected_in_a_tensor(model, tokens, max_new_tokens, stop):
        """You look for the place of the stop token and use the first one found, which raises an error if there is none.
        Perhaps the model never writes the stop token: what must you return then?"""
        new = mend_writing.reference(model, tokens, max_new_tokens, None)
        return new[:, : (new[0] == stop).nonzero()[0]]

    def stop_forbidden(model, tokens, max_new_tokens, stop):
        """The stop token can never be chosen: you set its score to −∞, and write the best of the other tokens. When the
        model chooses the stop token, writing ends."""

        def choice(scores):
            scores[..., stop] = float("-inf")
            return best_token(scores)

        return mend_writing.reference(model, tokens, max_new_tokens, stop, choice=choice)


@mend_writing.wrong
class Rounds:
    """Mistakes in the number of rounds."""

    def returned_only_in_the_loop(model, tokens, max_new_tokens, stop):
        """The model writes a single token, and if the stop token comes at once, you return `None`. The only `return` is
        inside the loop: it ends the function in the first round. How far must it be indented?"""
        written = mend_writing.reference(model, tokens, 1, stop)
        return written if written.shape[1] else None


@mend_writing.wrong
class Results:
    """Mistakes in what is returned."""

    def last_choice_returned(model, tokens, max_new_tokens, stop):
        """You return only the token that was chosen last, even if it is the stop token. The tokens before it belong to
        the answer: how do you collect them?"""
        return Loop.stop_token_returned(lambda text: best_token(model(text)), tokens, max_new_tokens, stop)[:, -1:]

    def scores_returned_too(model, tokens, max_new_tokens, stop):
        """You return a pair: the tokens, and the scores that the model returned last. The exercise asks for the new
        tokens alone."""
        seen = []

        def choice(scores):
            seen.append(scores)
            return best_token(scores)

        return mend_writing.reference(model, tokens, max_new_tokens, stop, choice=choice), seen[-1]


@mend_writing.mistake(
    recognizes=lambda probe, got, expected: probe.name == "a prompt of 300 tokens" and got.error is None
)
def last_tokens_alone(model, tokens, max_new_tokens, stop):
    """Your function is right for short prompts, but wrong for a prompt of 300 tokens: the model does not receive all of
    them. A GPT with a table of positions can read only a fixed number of tokens, so programs for it cut the text before
    each call, `tokens[:, -block_size:]`. Nothing limits the length here: which of your lines cuts the text?"""
    return mend_writing.reference(lambda text: model(text[:, -64:]), tokens, max_new_tokens, stop)
