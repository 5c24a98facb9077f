"""Practice: a lab that asks, and knows which mistake gives an answer that is wrong."""

import json
from functools import cache

import traitlets

from .. import practice
from .lab import Lab, between, one_of, script, style, whole

STATES = ["open", "checked", "shown"]


class Practice(Lab):
    """Answer questions on one topic or on several, and be told which mistake gives a wrong answer.

    Parameters
    ----------
    *names : str
        The topics, by their names; all of the course when left out.
    controls : sequence of str, optional
        The groups of controls to show, of ``"solution"`` and ``"score"``; all when left out.

    Attributes
    ----------
    topic, case, answer, state
        What is asked, by the topic's name and the number of the case; what the reader has answered, as text; and
        whether that is ``"open"``, has been ``"checked"``, or the right answer is ``"shown"``.

    Examples
    --------
    >>> Practice("strides_of")
    Practice(topic='strides_of', case=0)
    """

    _esm = script("practice_answers", "practice_inputs", "practice_record", "practice")
    _css = style("practice")
    shown = ("topic", "case")
    groups = ("solution", "score")

    topics = traitlets.List(traitlets.Dict()).tag(sync=True)
    topic = traitlets.Unicode().tag(sync=True)
    case = traitlets.Any(0).tag(sync=True)
    answer = traitlets.Unicode().tag(sync=True)
    state = traitlets.Unicode(STATES[0]).tag(sync=True)

    def __init__(self, *names, controls=None):
        known = practice.topics()
        names = [one_of("topic", name, list(known)) for name in names or known]
        super().__init__(topics=[_as_state(name) for name in names], topic=names[0], controls=controls)

    @traitlets.validate("topic")
    def _check_topic(self, proposal):
        return one_of("topic", proposal.value, [topic["name"] for topic in self.topics])

    @traitlets.validate("state")
    def _check_state(self, proposal):
        return one_of("state", proposal.value, STATES)

    @traitlets.validate("case")
    def _check_case(self, proposal):
        return whole("case", proposal.value, 0, practice.MOST_CASES - 1)

    @traitlets.validate("answer")
    def _check_answer(self, proposal):
        between("the length of the answer", len(proposal.value), 0, 400)
        return proposal.value


@cache
def _as_state(name):
    """What the browser gets of a topic: its table as one text, which is read when it is asked for."""
    topic = practice.topics()[name]
    table = json.dumps(topic.table(), ensure_ascii=False, separators=(",", ":"))
    return {"name": name, "title": topic.title, "chapter": topic.chapter, "table": table}
