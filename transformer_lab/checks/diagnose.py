"""Runs a learner's function, compares its results with the expected ones, names the mistake, and writes the report."""

from dataclasses import dataclass

from . import describe, errors, gradients, record, shared_slips, smallest_input, source, steps
from .fresh import FreshCopy
from .mismatch import describe_mismatch
from .observe import Interrupted, Timed, TimeUp, changes_each_time, run_guarded
from .probes import Outcomes
from .report import Report


def check(exercise, *functions):
    """Check the learner's function, show the card, and return the `Report`."""
    function = functions[0] if functions else None
    if len(functions) != 1:
        message = f"A check takes your function, and nothing else: `tl.checks.{exercise.name}({exercise.name})`."
        report = Report(exercise, "error", message)
    elif not callable(function):
        message = (
            f"Pass the function itself, without calling it. You passed a value of type `{type(function).__name__}`."
        )
        report = Report(exercise, "error", message)
    elif function is exercise.reference:
        message = "This is the course's own function. You can go on with it, but the exercise does not count as done."
        report = Report(exercise, "not attempted", message)
    else:
        try:
            report, report.printed = run_guarded(lambda: diagnose(exercise, function))
        except TimeUp as timeout:
            report = Report(exercise, "error", errors.timed_out_text(timeout))
        except Interrupted as interruption:
            report = Report(exercise, "error", errors.interrupted_text(interruption), interrupted=interruption)
        except Exception as error:
            report = Report(exercise, "error", errors.fault_text(error, "try your function"))
    if error := source.find_syntax_error(exercise.name):
        report.message = "\n\n".join(filter(None, [errors.outdated_text(exercise, error), report.message]))
    record.store(report)
    report.show()
    return report


def diagnose(exercise, function):
    """Return the `Report` on a function: compare the results first, then explain a failure or check the gradients.

    If the check itself fails after the comparison, the verdict on the results remains.
    """
    fresh_copy, function = FreshCopy(function), Timed(function)
    outcomes = Outcomes(exercise, function)
    if errors.is_stub(outcomes[0].error):
        return Report(exercise, "not attempted", errors.not_written_text(function, outcomes[0].error))
    failing_numbers = [
        number for number, expected in enumerate(exercise.expected) if not outcomes[number].same(expected)
    ]
    if not failing_numbers:
        report = Report(exercise, "correct")
    else:
        report = Report(exercise, "incorrect" if outcomes[failing_numbers[0]].error is None else "error")
    try:
        if failing_numbers:
            _explain(report, exercise, function, fresh_copy, outcomes, failing_numbers[0])
        else:
            _check_gradients(report, exercise, function, outcomes)
    except Exception as error:
        report.message = "\n\n".join(
            filter(None, [report.message, errors.fault_text(error, "look into your function")])
        )
    return report


def _check_gradients(report, exercise, function, outcomes):
    """Check the gradients of a function whose results are right; raise the error that ``facts`` raised, if any."""
    report.message = describe.describe_inputs_tried(exercise)
    if problem := gradients.describe_wrong_gradients(exercise, function):
        id = recognize_by_gradients(exercise, problem)
        report.status, report.mistake = "incorrect", id
        report.message = f"{exercise.mistakes[id].text}\n\n{problem}" if id in exercise.mistakes else problem
    elif error := next((outcome.facts_error for outcome in outcomes if outcome.facts_error), None):
        raise error


def _explain(report, exercise, function, fresh_copy, outcomes, failing_index):
    """Explain in the report what goes wrong; ``failing_index`` is the number of the first failing probe."""
    case = smallest_input.failing_case(exercise, function, outcomes, failing_index)
    if fresh_copy.is_right(exercise, exercise.probes[failing_index], exercise.expected[failing_index]):
        report.mistake, report.message = (
            "kept_between_calls",
            describe.describe_kept_state(exercise.probes[failing_index], fresh_copy.filled_stores()),
        )
    elif match := recognize(exercise, outcomes, function):
        report.mistake = "+".join(match.names)
        report.stage = exercise.mistakes[match.ids[0]].stage if match.ids else None
        report.message = describe.describe_recognized(exercise, function, outcomes, failing_index, match)
    elif all(outcome.error is None and outcome.value is None for outcome in outcomes):
        report.mistake = "nothing_returned"  # the same id in every exercise
        report.message = describe.NOTHING_RETURNED_TEXT
    elif not describe_mismatch(exercise, *case[1:]) and changes_each_time(
        exercise, function, exercise.probes[failing_index], outcomes[failing_index]
    ):
        report.message = describe.RANDOM_RESULT_TEXT
        return
    else:
        found_by_step = steps.find_stages(exercise, function, exercise.probes[failing_index])
        report.stage = next((stage for stage in found_by_step if not found_by_step[stage]), None)
        report.message = describe.describe_wrong(exercise, function, outcomes, failing_index, found_by_step, case)
    report.message += "\n\n" + smallest_input.evidence_text(exercise, *case)
    report.probe = exercise.probes[failing_index].name
    report.wrong_cells = smallest_input.wrong_cells(
        outcomes[failing_index].value, exercise.expected[failing_index].value
    )


@dataclass
class Match:
    """The known mistakes and the shared slips that together have the same outcomes as the learner's function."""

    ids: tuple  # ids of the mistakes
    slips: list  # objects of type `shared_slips.UndoneSlip`
    outcomes: list  # the outcomes of the learner's function, with the slips undone
    n_matching: int  # the number of probes on which the mistakes have these outcomes

    @property
    def names(self):
        return (*self.ids, *(undone_slip.slip.id for undone_slip in self.slips))


def recognize(exercise, outcomes, function=None):
    """Return the `Match` for a wrong function; None if no known mistake or slip has the function's outcomes.

    Matches with fewer names are preferred. A different order of axes or items, which only the numbers reveal, is tried
    last, and must explain every number.
    """
    match = _match_known(exercise, outcomes)
    if match is None or match.n_matching < len(outcomes):
        visible_slips = shared_slips.undo_visible_slips(exercise, outcomes)
        single_slips = []
        if len(visible_slips) > 1:
            single_slips = [shared_slips.undo_slip(exercise, outcomes, undone.slip) for undone in visible_slips]
        for slips in (visible_slips, *([undone_slip] for undone_slip in single_slips if undone_slip)):
            candidate = _match_known(exercise, slips[-1].after, slips) if slips else None
            if candidate and (match is None or candidate.n_matching > match.n_matching):
                match = candidate
        match = match or _with_reordering(exercise, outcomes, [])
        if visible_slips:
            match = match or _with_reordering(exercise, visible_slips[-1].after, visible_slips)
    if match is None and (ids := exercise.recognized_ids(outcomes)):
        match = Match(ids, [], outcomes, 0)
    if match and function and all(undone_slip.slip.id != "not_a_tensor" for undone_slip in match.slips):
        mistakes = [exercise.mistakes[id] for id in match.ids]
        equivalent_function = exercise.combined_function(mistakes) if match.ids in exercise.known_outcomes else None
        equivalent_function = equivalent_function if mistakes else exercise.reference
        slip = shared_slips.gradient_slip(exercise, function, equivalent_function) if equivalent_function else None
        if slip is not None:
            match.slips.append(slip)
    return match


def _with_reordering(exercise, outcomes, slips):
    """Return the match that undoes a reordering and has the fewest names; None if there is none, or more than one."""
    candidates = [
        match
        for undone_slip in shared_slips.undo_reordering_slips(exercise, outcomes)
        if (match := _match_known(exercise, undone_slip.after, [*slips, undone_slip], pairs=False))
        and match.n_matching == len(outcomes)
    ]
    fewest = min((len(match.names) for match in candidates), default=0)
    best_matches = [match for match in candidates if len(match.names) == fewest]
    return best_matches[0] if len({match.names for match in best_matches}) == 1 else None


def _match_known(exercise, outcomes, slips=(), pairs=True):
    """Return the `Match` with the one or two known mistakes that have a function's outcomes, or None.

    A mistake that shows on plain probes must have the function's outcomes on all plain probes. A mistake that shows
    only on special probes must have the function's outcomes on all probes where the mistake shows. If several mistakes
    fit, the mistake that fits the most probes is named, and a single mistake is preferred to a pair. If two mistakes
    fit equally well, both are named if they show on different probes; if they show on a common probe, the function
    could make either, and no mistake is named.
    """
    if slips and all(map(lambda got, expected: got.same(expected), outcomes, exercise.expected)):
        return Match((), list(slips), outcomes, len(outcomes))
    plain_numbers = {number for number, probe in enumerate(exercise.probes) if probe.plain}
    candidates = []
    for ids, known_outcomes in exercise.known_outcomes.items():  # single mistakes first, then pairs
        if len(ids) > 1 and (not pairs or (len(outcomes), -1) in (candidate[:2] for candidate in candidates)):
            break  # no pair fits better than a mistake that fits all probes, and there are many pairs to try
        if not all(outcomes[number].same(known_outcomes[number]) for number in plain_numbers):
            continue
        matching_numbers = {number for number, outcome in enumerate(outcomes) if outcome.same(known_outcomes[number])}
        failing_numbers = {
            number for number, expected in enumerate(exercise.expected) if not known_outcomes[number].same(expected)
        }
        if failing_numbers & plain_numbers or (failing_numbers and failing_numbers <= matching_numbers):
            candidates.append((len(matching_numbers), -len(ids), ids, failing_numbers))
    if not candidates:
        return None
    best_candidates = [candidate for candidate in candidates if candidate[:2] == max(candidates)[:2]]
    texts = {tuple(exercise.mistakes[id].text for id in ids) for *_, ids, _ in best_candidates}
    failing_sets = [failing_numbers for *_, failing_numbers in best_candidates]
    if len(texts) > 1 and sum(map(len, failing_sets)) > len(set().union(*failing_sets)):
        return None
    ids = best_candidates[0][2] if len(texts) == 1 else tuple(id for *_, ids, _ in best_candidates for id in ids)
    return Match(ids, list(slips), outcomes, best_candidates[0][0])


def recognize_by_gradients(exercise, problem):
    """Return the id of the known mistake whose results are right but whose gradients have this ``problem``, or None."""
    for id, mistake in exercise.mistakes.items():
        pairs = zip(exercise.known_outcomes[(id,)], exercise.expected)
        is_right = all(outcome.same(expected) for outcome, expected in pairs)
        if is_right and gradients.describe_wrong_gradients(exercise, mistake.function) == problem:
            return id
    return "cut_off_from_gradients" if problem == gradients.CUT_OFF_TEXT else None
