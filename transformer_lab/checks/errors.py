"""Writes the text of a card for a function that raised an error, ran too long, or was stopped."""

import dis
import inspect
import linecache
import os
import sysconfig
import traceback

import torch

from .course import FOLDERS, load
from .words import axis_words, in_words, round_for_card

# Folders that contain library code, not the learner's code.
LIBRARY_FOLDERS = (
    os.path.dirname(os.__file__),
    sysconfig.get_path("purelib"),
    os.path.dirname(torch.__file__),
    os.path.dirname(os.path.dirname(__file__)),
)

MATRIX_PRODUCT_OPERATIONS = {"matmul"}

ELEMENTWISE_OPERATIONS = {"add", "sub", "mul", "div", "masked_fill", "where", "eq", "lt", "le", "gt", "ge", "and", "or"}

EXPLANATIONS = {
    "torch.return_types": "Along an axis, `max`, `min`, `sort` and the like return a pair: the values and their "
    "indices. Use `.values`, or call `amax` or `amin`, which return the values alone.",
    "not implemented for 'Long'": "PyTorch supports this operation for floating-point numbers only, but the tensor "
    "contains whole numbers. Did you mean a different tensor?",
    "not implemented for 'Bool'": "PyTorch supports this operation for floating-point numbers only, but the tensor "
    "contains bools. Did you mean a different tensor?",
    "Boolean value of Tensor": "`if`, `and`, `or` and `not` need a single bool, not a whole tensor. To treat "
    "each number separately, use `&`, `|`, `~` and `torch.where`.",
    "view size is not compatible": "The numbers' order in memory does not allow a view of this shape. `reshape` would "
    "copy the numbers, which is right only if the axes are already in the order in which you want to join them.",
    "is invalid for input of size": "The product of the new sizes must equal the number of elements.",
}

STILL_RUNNING = "is still running: restart the kernel before you go on."


def timed_out_text(timeout, subject="function"):
    """Say that a function, or a test, exceeded the time limit; ``timeout`` is the `TimeUp`."""
    message = f"Your {subject} did not come to an end within {timeout.seconds:g} seconds"
    advice = "A right answer takes far less than one second. " if subject == "function" else ""
    advice += "Is there a loop that waits for something that never happens?"
    if timeout.still_running:
        return f"{message}. {advice} It {STILL_RUNNING}"
    return f"{message}, and was stopped. {advice}{_stopped_at_text(timeout)}"


def interrupted_text(interruption, subject="function"):
    """Say that the learner stopped the check; ``interruption`` is the `Interrupted`."""
    if interruption.still_running:
        return f"You stopped the check. Your {subject} {STILL_RUNNING}"
    return f"You stopped the check, and your {subject} with it.{_stopped_at_text(interruption)}"


def _stopped_at_text(error):
    """Say on which line of the learner's code a function was stopped."""
    lines = _learner_lines(error.stop_exception) if error.stop_exception else []
    return f"\n\nIt was stopped in {_quote_line(*lines[-1])}" if lines else ""


def fault_text(error, task):
    """Say that the check itself failed, through no fault of the learner; ``task`` is the task that it could not do."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = str(error).strip().split("\n")[0]
    return (
        f"The check could not {task}. This is a fault of the check, not yours. Please report it, together with "
        f"your code: `{type(error).__name__}: {text}`, in line {frame.lineno} of "
        f"`{os.path.basename(frame.filename)}`."
    )


def is_stub(error):
    """Return whether an error comes from ``raise NotImplementedError`` in a cell, and not from PyTorch."""
    if not isinstance(error, NotImplementedError):
        return False
    innermost = error.__traceback__
    while innermost.tb_next is not None:
        innermost = innermost.tb_next
    code = innermost.tb_frame.f_code.co_code
    return not is_library(innermost.tb_frame) and code[innermost.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def outdated_text(exercise, error):
    """Say that the newest cell with this function has a syntax error, and that an older version was checked."""
    return (
        f"Your newest cell with `{exercise.name}` ended with `SyntaxError`: {error.msg}, in line {error.lineno}. So "
        "this card is about an older version of the function. Correct that cell and run it first."
    )


def not_written_text(function, error):
    """Say which unwritten function the learner's function calls; say nothing if the checked function is unwritten."""
    stub = traceback.extract_tb(error.__traceback__)[-1].name
    unwrapped = inspect.unwrap(function)
    own_names = (getattr(function, "__name__", stub), *(vars(unwrapped) if isinstance(unwrapped, type) else ()))
    if stub in own_names or stub.startswith("<"):  # names such as "<lambda>" and "<module>"
        return ""
    message = f"Your function calls `{stub}`, which is not written yet. Write `{stub}` first"
    if stub in FOLDERS:
        message += f", or use the course's function: `{stub} = tl.checks.{stub}.reference`"
    return f"{message}."


def describe_error(exercise, function, probe, error, rejected_operation=None):
    """Say which error was raised, on which line of the learner's code, and what PyTorch rejected there."""
    name, text = type(error).__name__, str(error).strip().split("\n")[0]
    message = f"`{name}`: {text}" if text else f"`{name}`"
    lines = _learner_lines(error)
    if isinstance(error, SystemExit):
        message = "Your function ends Python itself, with `exit()` or the like."
    if isinstance(error, RecursionError):
        message = "Your function calls itself endlessly (`RecursionError`)."
    if not lines:
        if isinstance(error, TypeError) and (parameters := _parameters(function)) is not None:
            arguments = ", ".join(exercise.arguments)
            return f"`{exercise.name}` must take ({arguments}), but your function takes ({parameters}). {message}"
        return message
    frame, _ = lines[-1]
    message += f"\n\nThe error occurs in {_quote_line(*lines[-1])}"
    if isinstance(error, (SystemExit, RecursionError)):
        return message
    words = axis_words(exercise, probe)
    shapes = [
        f"`{name}` {_shape_in_words(value.shape, words, name in _argument_names(frame))}"
        for name, value in frame.f_locals.items()
        if isinstance(value, torch.Tensor)
    ]
    shapes_text = f"There, the shapes are: {', '.join(shapes)}." if shapes else ""
    number_text = _number_for_tensor_text(exercise, error)
    return "\n\n".join(
        filter(
            None,
            [message, shapes_text, _rejection_text(rejected_operation, words), number_text, _explanation_text(text)],
        )
    )


def _learner_lines(error):
    """Return a frame and a line number for each line of the learner's code in an error's traceback, innermost last."""
    return [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if not is_library(frame)]


def _quote_line(frame, number):
    """Quote a line of a function, and number it from the function's first line: ``line 2 of `f`: `return x` ``."""
    text = linecache.getline(frame.f_code.co_filename, number).strip()
    line_text = f"line {number - frame.f_code.co_firstlineno + 1} of `{frame.f_code.co_name}`"
    return f"{line_text}: `{text}`" if text else f"{line_text}."


def _shape_in_words(shape, words, is_argument):
    """Write a shape with the names of its axes if the names are certain.

    The names are certain for an argument. For any other tensor, they are used only if there are several axes and every
    size has a name: a single size proves little, since half of d_head may equal the size of a different axis.
    """
    is_certain = is_argument or (len(shape) > 1 and all(size in words for size in shape))
    return in_words(shape, words if is_certain else {})


def _argument_names(frame):
    code = frame.f_code
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _number_for_tensor_text(exercise, error):
    """Say which function of a different exercise received a number in place of a vector, such as the positions.

    The weight and the bias of a layer are excluded, since single numbers in their place would broadcast.
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        name = frame.f_code.co_name
        if name == exercise.name or name not in FOLDERS:
            continue
        for argument, axes in load(name).axes.items():
            value = frame.f_locals.get(argument) if argument in _argument_names(frame) else None
            is_tensor = isinstance(value, torch.Tensor)
            is_vector = len(axes.split()) == 1 and not axes.startswith("d_")
            if is_vector and (type(value) in (int, float) or (is_tensor and value.ndim == 0)):
                given = "a tensor of shape ()" if is_tensor else f"the number {round_for_card(value)}"
                return (
                    f"`{name}` takes a tensor of shape ({axes},) as `{argument}`, but was given {given}. For a single "
                    "number, pass a tensor of shape (1,)."
                )
    return ""


def _rejection_text(rejected_operation, words):
    """Say which operation PyTorch rejected, and which rule the operation broke."""
    # if only one tensor is involved, PyTorch's own error is clear enough
    if rejected_operation is None or len(rejected_operation.tensors) < 2:
        return ""
    operation, tensors = rejected_operation
    tensor_texts = [
        f"{f'`{name}`, ' if name else ''}{_shape_in_words(shape, words, bool(name))}" for name, shape in tensors
    ]
    message = f"PyTorch refused `{operation}` of {' and '.join(tensor_texts)}."
    shapes = [shape for _, shape in tensors]
    if operation in MATRIX_PRODUCT_OPERATIONS and len(shapes) == 2 and min(map(len, shapes)) > 1:
        left, right = shapes[0][-1], shapes[1][-2]
        if left != right:
            message += (
                " A matrix product sums over the last axis of the left factor and the second-to-last axis of the right "
                f"factor, but the sizes of these axes differ: {left} and {right}."
            )
    elif operation in ELEMENTWISE_OPERATIONS and len(shapes) == 2:
        pairs = enumerate(zip(reversed(shapes[0]), reversed(shapes[1])), 1)
        for axis, (one, other) in pairs:
            if one != other and 1 not in (one, other):
                message += (
                    " Sizes are compared from the right: two sizes must be equal, or one of them must be 1. On "
                    f"axis −{axis}, the sizes are {one} and {other}."
                )
                break
    return message


def _explanation_text(text):
    """Return the explanation of a PyTorch error if ``EXPLANATIONS`` has one; an empty string otherwise."""
    return next((words for part, words in EXPLANATIONS.items() if part in text), "")


def is_library(frame):
    return frame.f_code.co_filename.startswith((*LIBRARY_FOLDERS, "<frozen"))


def _parameters(function):
    try:
        return ", ".join(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None
