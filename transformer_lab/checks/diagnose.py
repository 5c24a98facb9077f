"""From what the learner's function does to a report that says what went wrong."""

from . import describe, record, source, steps
from .fresh import Fresh
from .observe import Interrupted, Timed, TimeUp, changes_each_time, watched
from .probes import Outcomes
from .report import Report


def check(exercise, *functions):
    """Check the learner's function, show the card, and return the `Report`."""
    function = functions[0] if functions else None
    if len(functions) != 1:
        said = f"A check takes your function, and nothing else: `tl.checks.{exercise.name}({exercise.name})`."
        report = Report(exercise, "error", said)
    elif not callable(function):
        said = f"Pass the function itself, without calling it. This is of type `{type(function).__name__}`."
        report = Report(exercise, "error", said)
    elif function is exercise.reference:
        said = "This is the course's own function. Go on with it; it does not count as yours."
        report = Report(exercise, "not attempted", said)
    else:
        try:
            report, report.printed = watched(lambda: diagnose(exercise, function))
        except TimeUp as end:
            report = Report(exercise, "error", describe.endless(end))
        except Interrupted as end:
            report = Report(exercise, "error", describe.interrupted(end), interrupted=end)
        except Exception as error:
            report = Report(exercise, "error", describe.fault(error, "try your function"))
    if error := source.broken_definition(exercise.name):
        report.message = "\n\n".join(filter(None, [describe.outdated(exercise, error), report.message]))
    record.note(report)
    report.show()
    return report


def diagnose(exercise, function):
    """Return the `Report` on a function: the verdict comes from its results alone, and then what is said of it.

    A fault of the check itself, while it looks for something to say, leaves the verdict as it is.
    """
    fresh, function = Fresh(function), Timed(function)
    outcomes = Outcomes(exercise, function)
    if describe.is_stub(outcomes[0].error):
        return Report(exercise, "not attempted", describe.not_written(function, outcomes[0].error))
    failed = [number for number, expected in enumerate(exercise.expected) if not outcomes[number].same(expected)]
    if not failed:
        report = Report(exercise, "correct")
    else:
        report = Report(exercise, "incorrect" if outcomes[failed[0]].error is None else "error")
    try:
        if failed:
            _explain(report, exercise, function, fresh, outcomes, failed[0])
        else:
            _look_closer(report, exercise, function, outcomes)
    except Exception as error:
        report.message = "\n\n".join(filter(None, [report.message, describe.fault(error, "look into your function")]))
    return report


def _look_closer(report, exercise, function, outcomes):
    """Look at the gradients of a function whose results are right, and at whether the check has seen all of it."""
    report.message = describe.tried(exercise)
    if trouble := describe.gradients(exercise, function):
        id = recognise_by_gradients(exercise, trouble)
        report.status, report.mistake = "incorrect", id
        report.message = f"{exercise.mistakes[id].text}\n\n{trouble}" if id else trouble
    elif unseen := next((outcome.unseen for outcome in outcomes if outcome.unseen), None):
        raise unseen


def _explain(report, exercise, function, fresh, outcomes, first):
    """Say what goes wrong in a function; ``first`` is the number of the first probe that it gets wrong."""
    case = describe.shown(exercise, function, outcomes, first)
    if fresh.is_right(exercise, exercise.probes[first], exercise.expected[first]):
        report.mistake, report.message = "kept_between_calls", describe.kept(exercise.probes[first], fresh.used())
    elif ids := recognise(exercise, outcomes):
        report.mistake, report.stage = "+".join(ids), exercise.mistakes[ids[0]].stage
        report.message = describe.recognised(exercise, function, outcomes, first, ids)
    elif all(outcome.error is None and outcome.value is None for outcome in outcomes):
        report.mistake, report.message = "nothing_returned", describe.NOTHING  # in every exercise the same
    elif not describe.kind(exercise, *case[1:]) and changes_each_time(
        exercise, function, exercise.probes[first], outcomes[first]
    ):
        report.message = describe.RANDOM
        return
    else:
        done = steps.looked_for(exercise, function, exercise.probes[first])
        report.stage = next((stage for stage in done if not done[stage]), None)
        report.message = describe.wrong(exercise, function, outcomes, first, done, case)
    report.message += "\n\n" + describe.evidence(exercise, *case)
    report.probe = exercise.probes[first].name
    report.wrong = describe.wrong_numbers(outcomes[first].value, exercise.expected[first].value)


def recognise(exercise, outcomes):
    """Return the ids of the known mistake, or of the two, that act like the learner's function; none if none do.

    A mistake that shows on plain probes must do what the function does on all of those. One that shows only on special
    probes must do so on all probes where it shows. Where several fit, the one that fits the most probes is named, and
    one mistake before two. Two that fit equally well are both named if they show on different probes; otherwise the
    function could be either, and nothing is named.
    """
    plain = {number for number, probe in enumerate(exercise.probes) if probe.plain}
    fitting = []
    for ids, known in exercise.known.items():  # each alone, then each two
        if len(ids) > 1 and (len(outcomes), -1) in (candidate[:2] for candidate in fitting):
            break  # no two fit better than one that fits all: most answers are known here, and pairs are many
        if not all(outcomes[number].same(known[number]) for number in plain):
            continue
        fits = {number for number, outcome in enumerate(outcomes) if outcome.same(known[number])}
        shows = {number for number, expected in enumerate(exercise.expected) if not known[number].same(expected)}
        if shows & plain or (shows and shows <= fits):
            fitting.append((len(fits), -len(ids), ids, shows))
    if not fitting:
        return exercise.by_sign(outcomes)
    best = [candidate for candidate in fitting if candidate[:2] == max(fitting)[:2]]
    texts = {tuple(exercise.mistakes[id].text for id in ids) for *_, ids, _ in best}
    if len(texts) == 1:
        return best[0][2]
    shown = [shows for *_, shows in best]
    if sum(map(len, shown)) > len(set().union(*shown)):
        return ()
    return tuple(id for *_, ids, _ in best for id in ids)


def recognise_by_gradients(exercise, trouble):
    """Return the id of the known mistake whose results are right and whose gradients have the same trouble, or None."""
    for id, mistake in exercise.mistakes.items():
        is_right = all(known.same(right) for known, right in zip(exercise.known[(id,)], exercise.expected))
        if is_right and describe.gradients(exercise, mistake.function) == trouble:
            return id
    return None
