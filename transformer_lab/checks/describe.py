"""Says on a card which known mistakes cause a wrong result, or how the result differs from the correct one."""

import re
from copy import deepcopy

import torch

from . import source, steps
from .agree import agree, is_finite, is_float, is_readable, metadata, tensors_in
from .errors import describe_error
from .mismatch import describe_mismatch
from .probes import each_tensor
from .relation import Case, describe_relation, describe_wrong_share, describe_wrong_term, wrong_positions
from .smallest_input import first_wrong_item
from .words import axis_sizes

MAX_INPUTS_NAMED = 8


def describe_inputs_tried(exercise):
    """Name some of the inputs on which a correct function was tried; the names are the same on every device."""
    names = [probe.name for probe in exercise.probes if not probe.this_device_only]
    if len(names) > MAX_INPUTS_NAMED + 1:
        names[MAX_INPUTS_NAMED:] = [f"and {len(names) - MAX_INPUTS_NAMED} more"]
    return f"Your function is right with {', '.join(names)}."


RANDOM_RESULT_TEXT = (
    "For the same input, your function returns a different result each time. Does it draw random numbers, for dropout "
    "or for new weights, or does it keep something from one call to the next?"
)


def describe_kept_state(probe, names):
    """Say that a function is right only on its first call; ``names`` are the variables in which it stores results."""
    stored_in = f", in {' and '.join(f'`{name}`' for name in names)}" if names else ""
    return (
        f"Called alone, your function is right with {probe.name}; called after other inputs, it is wrong. It keeps "
        f"something from one call to the next{stored_in}: what it stored for one input is returned for "
        "another. On what does the stored value depend, and under which key do you store it?"
    )


NOTHING_RETURNED_TEXT = (
    "Your function returns `None`, like every function that ends without a `return`. Printed values and local "
    "variables are not returned."
)


def describe_wrong(exercise, function, outcomes, failing_index, found_by_step, card_case):
    """Describe the wrong result of a function that makes no known mistake.

    ``found_by_step`` maps each step of a correct answer to whether the function computes it; ``card_case`` is the case
    that `smallest_input.failing_case` returned.
    """
    probe, got, expected = exercise.probes[failing_index], outcomes[failing_index], exercise.expected[failing_index]
    sentences = [] if probe.plain else [f"Your function is right for ordinary input, but wrong for {probe.name}."]
    if expected.error is not None:
        raise_advice = (
            " It returns an error: use `raise` instead of `return`." if isinstance(got.value, Exception) else ""
        )
        sentences.append(f"For this input, your function must raise a `{type(expected.error).__name__}`.{raise_advice}")
    if got.error is not None:
        sentences.append(describe_error(exercise, function, probe, got.error, got.rejected_operation))
        sentences += source_findings(function, exercise.unneeded_arguments)
    elif message := describe_mismatch(exercise, probe, got, expected):
        sentences += [
            message,
            _describe_squeezed_numbers(got.value, expected.value),
            *source_findings(function, exercise.unneeded_arguments),
        ]
    else:
        sentences += source_findings(function, exercise.unneeded_arguments)
        broken_properties = _broken_properties(exercise, function, probe)
        if broken_properties:
            sentences.append(f"The following statement should be true, but is false: {broken_properties[0]}")
        # If the function breaks a property that nearly right numbers satisfy, such as independence from hidden keys,
        # the numbers are not nearly right: a small inaccuracy such as a different eps cannot be the cause.
        allow_nearly_right = not set(broken_properties) - set(
            _broken_properties(exercise, _nearly_right_function(exercise), probe)
        )
        sentences.append(_relation_text(exercise, outcomes, failing_index, card_case, allow_nearly_right))
        sentences.append(_describe_steps(exercise, found_by_step))
    return "\n\n".join(filter(None, sentences))


def _describe_squeezed_numbers(got, expected):
    """Say whether the numbers are right in a result that has too many or too few axes of size 1."""
    are_tensors = isinstance(got, torch.Tensor) and isinstance(expected, torch.Tensor)
    if not are_tensors or metadata(got) == metadata(expected) or not is_readable(got):
        return ""
    got, expected = got.squeeze(), expected.squeeze()
    if metadata(got) != metadata(expected) or not expected.numel():
        return ""
    if agree(got, expected):
        return "Apart from axes of size 1, your result is right."
    wrong = wrong_positions(got, expected)
    if wrong.numel() == 1:
        return "The number in your result is wrong as well."
    return f"Apart from axes of size 1, {int(wrong.sum())} of the {wrong.numel()} numbers are wrong as well."


def _relation_text(exercise, outcomes, failing_index, card_case, allow_nearly_right):
    """Describe how the wrong numbers follow from the right ones, on the first failing probe and in the card's case.

    ``allow_nearly_right`` permits the description "nearly right".
    """
    if message := describe_wrong_term(exercise, outcomes) or describe_wrong_share(exercise, outcomes):
        return message
    sizes, *shown_case = card_case
    pairs = [(exercise.probes[failing_index], outcomes[failing_index], exercise.expected[failing_index]), shown_case]
    cases = []
    for probe, got, expected in pairs:
        item, *item_pair = first_wrong_item(got.value, expected.value)
        cases.append(Case(*item_pair, dict(axis_sizes(exercise, probe)) | (sizes or exercise.sizes)))
    axes = exercise.axes.get("return", "").split(", ")
    return describe_relation(*cases, axes[item].split() if item < len(axes) else [], allow_nearly_right)


def _describe_steps(exercise, found_by_step):
    """Say between which two steps of a correct answer the function goes wrong."""
    if not found_by_step:
        return ""
    if all(found_by_step.values()):
        return (
            "Your function contains all steps of a right answer. It does something else as well, or returns the wrong "
            "tensor."
        )
    names = list(found_by_step)
    missing = [name for name in names if not found_by_step[name]]
    found_names = names[: names.index(missing[0])]
    last_found = found_names[-1] if found_names else None
    found_text = steps.describe_step(exercise, last_found) if last_found else ""
    missing_text = " and ".join(steps.describe_step(exercise, name) for name in missing)
    if not any(found_by_step.values()):
        return f"Your function contains none of the steps of a right answer. It should begin with {missing_text}."
    if last_found is None:
        return f"The first step of a right answer is not found in your function: {missing_text}."
    where_to_look = "between these two steps" if len(missing) == 1 else "between the found step and the missing steps"
    return (
        f"The check searched your function for the steps of a right answer. Found: {found_text}. Not found: "
        f"{missing_text}. Look {where_to_look}."
    )


def source_findings(function, unneeded_arguments=()):
    """Say what the source alone reveals: unused parameters (except ``unneeded_arguments``), or a discarded result."""
    if (tree := source.parse(function)) is None:
        return []
    findings = []
    if unused := [f"`{name}`" for name in source.unused_parameters(tree) if name not in unneeded_arguments]:
        verb = "does it" if len(unused) == 1 else "do they"
        findings.append(f"Your function never uses {' and '.join(unused)}. Where {verb} belong?")
    if discarded := source.discarded_result(tree):
        findings.append(
            f"The result of `{discarded}` is thrown away: this line does not change a tensor, but makes a new one. "
            "Give the result a name, as in `x = …`."
        )
    return findings


def describe_recognized(exercise, function, outcomes, failing_index, match):
    """Say which known mistakes and slips a function makes, and what else goes wrong."""
    got, mistakes = outcomes[failing_index], [exercise.mistakes[id] for id in match.ids]
    # A mistake that has a function ``recognizes`` has no fixed outcome, so the card shows how the learner's numbers
    # differ from the right ones.
    shows_numbers = any(mistake.recognizes for mistake in mistakes)
    other_failure = _describe_other_failure(exercise, match, got)
    has_several_causes = len(match.names) > 1 or bool(other_failure)
    texts = [mistake.text_beside_another if has_several_causes else mistake.text for mistake in mistakes]
    slips = [slip.message(exercise) for slip in match.slips]
    sentences = _merge_texts(*texts) if len(texts) == 2 and not slips else _with_mistake_count([*texts, *slips])
    if slips and not has_several_causes:
        sentences.append("Apart from that, your results are right.")
    probe, expected = exercise.probes[failing_index], exercise.expected[failing_index]
    if got.error is not None:
        sentences.append(describe_error(exercise, function, probe, got.error, got.rejected_operation))
    elif shows_numbers:
        sentences.append(describe_mismatch(exercise, probe, got, expected))
    return "\n\n".join(filter(None, [*sentences, other_failure]))


def _with_mistake_count(texts):
    """If there are two or more texts, add a sentence in front that says how many there are."""
    return texts if len(texts) < 2 else [f"{NUMBER_WORDS.get(len(texts), 'Several')} things go wrong here.", *texts]


NUMBER_WORDS = {2: "Two", 3: "Three"}


def _merge_texts(one, other):
    """Return the texts of two mistakes, merged if they differ only in one word, such as *key* and *query*."""
    words = one.split(), other.split()
    pairs = [[re.sub(r"\W", "", word) for word in pair] for pair in zip(*words) if pair[0] != pair[1]]
    # Only the first three letters are compared, so that a plural counts as the same word.
    if len(words[0]) == len(words[1]) and len({(a[:3], b[:3]) for a, b in pairs}) == 1:
        a, b = min(pairs)
        return [f"You made the same mistake twice: the following is true of both *{a}* and *{b}*.", one]
    return _with_mistake_count([one, other])


def _describe_other_failure(exercise, match, got):
    """Describe a failure on a probe other than that of ``got``.

    The failure is one that neither the known mistakes nor the error in ``got`` explains.
    """
    # ``exercise.known_outcomes`` has no entry for a match that consists only of shared slips, or of mistakes that
    # show on different probes.
    known_outcomes = exercise.known_outcomes.get(match.ids, match.outcomes)
    predicates = [exercise.mistakes[id].recognizes for id in match.ids if exercise.mistakes[id].recognizes]
    for probe, outcome, mistake_outcome, expected in zip(
        exercise.probes, match.outcomes, known_outcomes, exercise.expected
    ):
        # Rounding intermediate results to float32 is not a separate mistake, even if the known mistake magnifies the
        # rounding error.
        is_only_rounding = not mistake_outcome.same(expected) and (
            outcome.same(mistake_outcome, torch.float32) or _differs_by_rounding(outcome.value, mistake_outcome.value)
        )
        is_explained = got.error is not None and type(outcome.error) is type(got.error)
        is_explained = is_explained or any(recognizes(probe, outcome, expected) for recognizes in predicates)
        if is_only_rounding or is_explained or outcome.same(mistake_outcome) or outcome.same(expected):
            continue
        if mistake_outcome.same(expected) or _is_worse(exercise, probe, outcome, mistake_outcome, expected):
            symptom = f"raises `{type(outcome.error).__name__}`" if outcome.error else "goes wrong in a different way"
            return f"Besides, with {probe.name}, your function {symptom}."
    return ""


def _differs_by_rounding(got, mistake_value):
    """Return whether results differ by at most 1%, as sines of angles in the thousands do in float32 and float64."""
    pairs = list(zip(tensors_in(got), tensors_in(mistake_value)))
    return bool(pairs) and all(
        metadata(one) == metadata(other) and is_float(one) and bool((one - other).norm() <= other.norm() / 100)
        for one, other in pairs
    )


def _is_worse(exercise, probe, got, mistake_outcome, expected):
    """Return whether a function fails on a probe in a worse way than a known mistake that also fails on this probe.

    A wrong result that differs from the known mistake's result may still have the same cause: for example, a small
    number in the denominator turns NaN into 0.
    """
    if got.error is not None or mistake_outcome.error is not None:
        return mistake_outcome.error is None
    if expected.error is not None or describe_mismatch(exercise, probe, mistake_outcome, expected):
        return False
    return bool(describe_mismatch(exercise, probe, got, expected)) or (
        bool(tensors_in(expected.value)) and is_finite(mistake_outcome.value)
    )


def _broken_properties(exercise, function, probe):
    """Return the sentence of each property that does not hold."""
    broken_properties = []
    for sentence, property_holds in exercise.properties.items():
        try:
            # the arguments are copied, since a function may change them
            is_true = property_holds(function, *deepcopy(probe.arguments))
        except Exception:  # the function cannot handle this call; a probe reports the error
            continue
        if not is_true:
            broken_properties.append(sentence)
    return broken_properties


def _nearly_right_function(exercise):
    """Return a function whose numbers are off by a thousandth."""
    return lambda *arguments: each_tensor(
        lambda tensor: 1.001 * tensor if is_float(tensor) else tensor, exercise.reference(*arguments)
    )
