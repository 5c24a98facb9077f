"""Practice: a lab that asks questions, and recognizes the mistake behind a wrong answer."""

import traitlets

from .. import practice
from ..practice.topic import Topic
from .lab import Lab, as_integer, as_number, as_option, script, style

STATES = ["open", "checked", "shown"]


class Practice(Lab):
    """Answer questions on one or several topics, and learn which mistake leads to a wrong answer.

    Parameters
    ----------
    *topics : str or Topic
        The topics to practise: names of the course's topics, or your own topics; all topics of the course when left
        out.
    controls : sequence of str, optional
        The groups of controls to show: any of ``"solution"`` and ``"score"``; all when left out.

    Attributes
    ----------
    choice
        The source of the questions, if there are several topics: ``"all"``, a chapter's number, ``"to3"`` for the first
        three chapters, or a topic's name. ``"start"`` shows a page to choose from.
    topic, case, answer, state
        The question, by the name of its topic and the number of its case; the reader's answer as text; and the state
        of the question: ``"open"``, ``"checked"``, or ``"shown"`` if the lab shows the right answer.

    Examples
    --------
    >>> Practice("strides_of")
    Practice(topic='strides_of', case=0)
    """

    _esm = script("practice_answers", "practice_inputs", "practice_record", "practice_start", "practice")
    _css = style("practice")
    repr_traits = ("topic", "case")
    groups = ("solution", "score")

    topics = traitlets.List(traitlets.Dict()).tag(sync=True)
    choice = traitlets.Unicode("all").tag(sync=True)
    topic = traitlets.Unicode().tag(sync=True)
    case = traitlets.Any(0).tag(sync=True)
    answer = traitlets.Unicode().tag(sync=True)
    state = traitlets.Unicode(STATES[0]).tag(sync=True)

    def __init__(self, *topics, controls=None):
        course = practice.topics()
        chosen = [
            topic if isinstance(topic, Topic) else course[as_option("topic", topic, list(course))] for topic in topics
        ]
        entries = [_browser_entry(topic) for topic in chosen or course.values()]
        choice = "start" if len(entries) > 1 else "all"
        super().__init__(topics=entries, topic=entries[0]["name"], choice=choice, controls=controls)

    @traitlets.validate("choice")
    def _check_choice(self, proposal):
        chapters = list(dict.fromkeys(str(topic["chapter"]) for topic in self.topics))
        up_to = [f"to{chapter}" for chapter in chapters]
        names = [topic["name"] for topic in self.topics]
        return as_option("choice", proposal.value, ["start", "all", *up_to, *chapters, *names])

    @traitlets.validate("topic")
    def _check_topic(self, proposal):
        return as_option("topic", proposal.value, [topic["name"] for topic in self.topics])

    @traitlets.validate("state")
    def _check_state(self, proposal):
        return as_option("state", proposal.value, STATES)

    @traitlets.validate("case")
    def _check_case(self, proposal):
        return as_integer("case", proposal.value, 0, practice.MAX_CASES - 1)

    @traitlets.validate("answer")
    def _check_answer(self, proposal):
        as_number("the length of the answer", len(proposal.value), 0, 400)
        return proposal.value


def _browser_entry(topic):
    """Return the topic for the browser: its table is JSON text, which is parsed when the topic is needed."""
    name = topic.name or topic.title
    return {"name": name, "title": topic.title, "chapter": topic.chapter, "table": topic.table_json}
