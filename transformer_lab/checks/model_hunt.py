"""In the hunt on whole models, the learner's test runs on models with bugs and on correct models.

    tl.checks.hunt(tl.checks.whole_model, test_whole_model)

``test(model)`` rejects a model by raising an error or by returning False, as in the other hunts. The test's argument is
a `Model`.
"""

from collections import Counter

from torch import nn

from ..bugs import BUGS, unpublished
from ..bugs.right import RIGHT_MODELS
from .hunt import Hunt, _is_false, unwritten_text
from .hunt_report import HuntReport
from .hunts import WHOLE_MODEL
from .observe import CALL_SETTINGS, Timed, is_stop, settings_kept

# The bugs of each kind: published bugs, which have a thread, by name; and models with other bugs, by class.
BUGS_BY_KIND = {
    "an output sees a token that it must not see": (
        *("inverted_mask", "weak_mask", "window_plus_one"),
        *(unpublished.NoMask, unpublished.Blocks, unpublished.NextToken, unpublished.NormOverTheSequence),
    ),
    "one text sees another": ("packed_together", unpublished.NormOverTheBatch),
    "padding changes a text": ("left_padding", "fully_masked_row", unpublished.PaddingRead),
    "the outputs are different if a text comes in parts, with a cache": (
        "causal_corner",
        unpublished.StalePositions,
        unpublished.CacheReplaced,
    ),
    "the loss asks for a wrong token": ("shifted_twice",),
    "training and evaluation disturb each other": ("dropout_in_evaluation", "bias_as_mask", "dropout_gone"),
    "the layers begin equal": ("equal_layers",),
}
HINTS = (
    "Which outputs may move when you replace one token? And which other ways to compute the same outputs does the "
    "model offer?",
    "Replace each token in turn and look at all outputs, with the weights as they are and with weights 3,000 times as "
    "large. Then compare a text alone with the same text padded, in front and behind; packed documents with separate "
    "ones; a text in parts with the whole text; the model's loss with your own; two runs in evaluation mode; and "
    "training mode with evaluation mode.",
    "`for j in range(seq):`, `other = tokens.clone()`, `moved = (model(other) - model(tokens)).abs().amax(…)`, `assert "
    "moved[:j].max() < …`; then one `assert torch.allclose(…, atol=…)` for each of the comparisons",
)


class Model(nn.Module):
    """A causal language model as a test sees it: it maps token ids below 50 to scores for the next token.

    ``window`` is the number of tokens that a token sees in one layer, or None if there is no window; ``n_layers`` is
    the number of layers, and ``dropout`` the dropout probability.
    """

    calls = 0  # counts the calls of all models together, since a test may copy the model

    def __init__(self, model):
        super().__init__()
        self.wrapped_model = model
        self.window, self.dropout = model.window, model.dropout
        self.n_layers = len(model.projections)

    def __repr__(self):
        return "<a language model>"

    def forward(self, tokens):
        """Return the scores, of shape (batch, seq, 50), for tokens of shape (batch, seq)."""
        Model.calls += 1
        return self.wrapped_model(tokens)

    def padded(self, tokens, keep):
        """Return the scores for a padded batch; ``keep``, of shape (batch, seq), is True at real tokens."""
        Model.calls += 1
        return self.wrapped_model(tokens, keep=keep)

    def packed(self, tokens, documents):
        """Return the scores for rows of several documents; ``documents``, of shape (batch, seq), numbers them."""
        Model.calls += 1
        return self.wrapped_model(tokens, documents=documents)

    def step(self, tokens, cache=None):
        """Return the scores for one or more further tokens, and the new cache; in the first step, ``cache`` is None."""
        Model.calls += 1
        return self.wrapped_model.step(tokens, cache)

    def loss(self, tokens):
        """Return the mean loss of predicting each next token."""
        Model.calls += 1
        return self.wrapped_model.loss(tokens)


class _Trial:
    """One run of a test on a model: ``error`` is what the test raised; ``passed`` says whether the test accepted the
    model."""

    def __init__(self, test, build):
        self.error, returned_value, calls_before = None, None, Model.calls
        with settings_kept(CALL_SETTINGS):
            model = Model(build()).cpu().eval()
            try:
                returned_value = Timed(test)(model)
            except BaseException as error:  # also SystemExit: the test may call exit()
                if is_stop(error):
                    raise
                self.error = error
        self.calls = Model.calls - calls_before
        self.passed = self.error is None and not _is_false(returned_value)


class ModelHunt(Hunt):
    """The task of writing a test of a whole model."""

    time_factor = 5  # multiplies the time limit, since a correct test may audit each of thirty models

    def __init__(self):
        self.exercise, self.name, self.hints = None, WHOLE_MODEL, HINTS

    def __repr__(self):
        return "<the hunt for mistakes in whole models>"

    def run(self, test, started_functions):
        def run_on(build):
            started_functions.append(build)
            return _Trial(test, build)

        first_trial = run_on(next(iter(RIGHT_MODELS.values())))
        if reason := unwritten_text(test, first_trial.error):
            return HuntReport(self, "not attempted", reason.strip())
        if first_trial.error is None and not first_trial.calls:
            return HuntReport(self, "error", "Your test never calls the model, so it cannot tell models apart.")
        refused = {name: trial for name, build in RIGHT_MODELS.items() if not (trial := run_on(build)).passed}
        hunted = [(kind, mistake) for kind, mistakes in BUGS_BY_KIND.items() for mistake in mistakes]
        escaped = [(kind, mistake) for kind, mistake in hunted if run_on(_builder_of(mistake)).passed]
        caught = [mistake for kind, mistake in hunted if (kind, mistake) not in escaped]
        report = HuntReport(self, "incorrect", caught=len(caught), known=len(hunted), refused=len(refused))
        if refused:
            paragraphs = [_refusal_text(refused)]
        else:
            paragraphs = [f"Your test accepts all {len(RIGHT_MODELS)} right models."]
            if not escaped:
                report.status = "correct"
            else:
                report.kinds = _count_kinds(escaped, hunted)
                paragraphs[0] += f" {report.next_star_text()}"
        if caught and not refused:
            paragraphs.append(_caught_text(caught))
        report.message = "\n\n".join(paragraphs)
        return report


def _builder_of(mistake):
    """Return a function that builds the model with a bug."""
    return mistake if isinstance(mistake, type) else lambda: BUGS[mistake].arguments()["model"]


def _count_kinds(escaped, hunted):
    totals = Counter(kind for kind, _ in hunted)
    return [(kind, count, totals[kind]) for kind, count in Counter(kind for kind, _ in escaped).most_common()]


def _caught_text(caught):
    """Name the published bugs that were caught, with their threads, and count the other bugs."""
    published_bugs = [BUGS[mistake] for mistake in caught if isinstance(mistake, str)]
    titles = "; ".join(f"{bug.title} ({bug.thread}, {bug.date})" for bug in published_bugs)
    n_unpublished = len(caught) - len(published_bugs)
    bugs_word = "bug" if n_unpublished == 1 else "bugs"
    others_text = f"; and {n_unpublished} {bugs_word} without a thread" if n_unpublished and published_bugs else ""
    return f"Caught: {titles}{others_text}. The museum tells the story of each published bug." if published_bugs else ""


def _refusal_text(refused):
    """Say which correct models a test rejects."""
    name, trial = next(iter(refused.items()))
    rejection_text = "The test returns False."
    if trial.error is not None:
        text = (str(trial.error).strip().splitlines() or [""])[0][:200]
        rejection_text = f"The test raises `{type(trial.error).__name__}{f': {text}' if text else ''}`."
    return (
        f"Your test rejects {len(refused)} of {len(RIGHT_MODELS)} right models, so it gets no star. One of them has "
        f"{name}. {rejection_text}\n\nWhat this model does is right. Which of your requirements is not in the "
        "docstring?"
    )


whole_model = ModelHunt()
