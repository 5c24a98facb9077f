"""Whatever the learner's function does, the check ends with a card and leaves the session unchanged."""

import builtins
import functools
import os
import random
import re
import signal
import sys
import threading
import time
import warnings
import weakref
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
import torch
from jupyter_client.manager import start_new_kernel
from torch.func import vmap
from torch.nn import functional as F

import transformer_lab as tl
from transformer_lab.checks.observe import Probe, Stopped, _stopped_unreported
from transformer_lab.checks.probes import Outcomes

check = tl.checks.split_heads


@pytest.fixture(autouse=True)
def temporary_record(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_LAB_DATA", str(tmp_path))


def right_answer(x, n_heads):
    batch, seq, d_model = x.shape
    return x.reshape(batch, seq, n_heads, d_model // n_heads).transpose(1, 2)


# Results that are not tensors, or not plain tensors


@pytest.mark.parametrize(
    "wrap, message, mistake",
    [
        (lambda result: result.cpu().numpy(), "type `ndarray`", "not_a_tensor"),
        (lambda result: result.tolist(), "type `list`", "not_a_tensor"),
        (lambda result: (result, result), "type `tuple`", None),
        (lambda result: "(2, 3, 7, 5)", "type `str`", None),
        (lambda result: 0, "type `int`", None),
        (lambda result: right_answer, "type `function`", None),
        (lambda result: result.double(), "of `float64`, but should be of `float32`", "in_float64"),
        (lambda result: result.half(), "of `float16`", "in_another_dtype"),
        (lambda result: result.to_sparse(), "sparse", None),
        (lambda result: result.to("meta"), "`meta`", None),
        (lambda result: torch.nested.nested_tensor(list(result)), "a nested tensor", None),
        (lambda result: torch.quantize_per_tensor(result, 0.1, 0, torch.qint8), "of `qint8`", None),
        (lambda result: result[:0], r"shape \(0, heads 3, seq 7, d_head 5\)", None),
        (lambda result: result.sum(), r"shape \(\)", None),
        (lambda result: result * float("nan"), "nan", None),
    ],
)
def test_a_result_of_a_wrong_type_or_shape_is_reported(wrap, message, mistake, capsys):
    report = check(lambda x, n_heads: wrap(right_answer(x, n_heads)))
    assert (report.status, report.mistake) == ("incorrect", mistake)
    assert re.search(message, report.message)
    assert capsys.readouterr().out.startswith("✗ split_heads: incorrect")


def list_of_itself():
    items = []
    items.append(items)
    return items


@pytest.mark.parametrize("name", ["normalize_rows", "attention", "attention_parameters", "broadcast_shape"])
@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.to("meta"),
        lambda x: x.to_sparse(),
        lambda x: torch.complex(x, x),
        lambda x: torch.nested.nested_tensor([x, x]),
        lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
        lambda x: x.to(torch.float8_e4m3fn),
        lambda x: 10**5000,
        lambda x: list_of_itself(),
    ],
)
def test_intermediate_values_and_results_may_be_of_any_type(name, make):
    def made_and_dropped(*arguments):
        make(torch.ones(2, 3))
        return -7

    for function in (made_and_dropped, lambda *arguments: make(torch.ones(2, 3))):
        report = getattr(tl.checks, name)(function)
        assert report.status in ("incorrect", "error") and str(report) and report._repr_html_()


def test_a_mistake_may_show_only_with_a_model_on_meta():
    def where_there_are_numbers(model):
        parameters = [p for p in model.parameters() if p.device.type != "meta"]
        return sum(p.numel() for p in parameters), sum(p.nbytes for p in parameters)

    report = tl.checks.mend_model_size(where_there_are_numbers)
    assert report.status == "incorrect" and report.probe == "a model on the device meta"


@pytest.mark.parametrize(
    "wrap, message",
    [
        (
            lambda state: {"S": state[0], "z": state[1]},
            "Item 1 of your result is of type `dict`; it must be a tuple.",
        ),
        (lambda state: None, "Item 1 of your result is of type `NoneType`"),
        (lambda state: state[:1], "Item 1 of your result has the length 1; it must have the length 2."),
        (
            lambda state: (state[0], 1.0),
            "Item 2 of item 1 of your result is of type `float`; it must be a tensor.",
        ),
    ],
)
def test_an_item_of_a_wrong_type_in_a_result_is_reported(wrap, message):
    def step(state, query, key, value):
        after, output = tl.checks.recurrent_step.reference(state, query, key, value)
        return wrap(after), output

    report = tl.checks.recurrent_step(step)
    assert (report.status, report.mistake) == ("incorrect", None)
    assert message in report.message


def test_a_card_marks_code_and_emphasis():
    report = tl.checks.report.Report(check, "incorrect", "A *row* is `2 * x * y`, and 2 * 3 * 4 < 25.")
    html = report._repr_html_()
    assert "<em>row</em>" in html and ">2 * x * y</code>" in html and "2 * 3 * 4 &lt; 25" in html


# Errors


def function_that_raises(error):
    def function(x, n_heads):
        raise error

    return function


@pytest.mark.parametrize(
    "error, message",
    [
        (ZeroDivisionError("division by zero"), "`ZeroDivisionError`: division by zero"),
        (KeyError(), "`KeyError`"),
        (Exception(), "`Exception`"),
        (SystemExit(1), "ends Python itself"),
        (KeyboardInterrupt(), "`KeyboardInterrupt`"),
        (GeneratorExit(), "`GeneratorExit`"),
        (AssertionError("a\nb\nc"), "`AssertionError`: a"),
    ],
)
def test_an_error_is_reported_with_the_learners_own_line(error, message):
    report = check(function_that_raises(error))
    assert (report.status, report.mistake) == ("error", None)
    assert message in report.message and "line 2 of `function`: `raise error`" in report.message
    assert "Traceback" not in str(report) and "transformer_lab" not in str(report)


def test_the_shapes_at_the_line_of_an_error_are_reported():
    def function(x, n_heads):
        keys = x.transpose(1, 2)
        return x @ x @ keys

    message = check(function).message
    assert "line 3 of `function`: `return x @ x @ keys`" in message
    assert "`x` (batch 2, seq 7, d_model 15), `keys` (batch 2, d_model 15, seq 7)" in message


def test_the_line_is_the_learners_even_where_the_library_raises():
    message = check(lambda x, n_heads: tl.split_heads(x, 4)).message
    assert "`ValueError`: n_heads" in message and "tl.split_heads(x, 4)" in message


@pytest.mark.parametrize("function", [lambda x: x, lambda: None, lambda x, n_heads, more: x])
def test_wrong_parameters_are_reported(function):
    report = check(function)
    assert (
        report.status == "error" and "`split_heads` must take (x, n_heads), but your function takes (" in report.message
    )


@pytest.mark.parametrize("value", [None, 3, "split_heads", torch.ones(2), [right_answer]])
def test_a_value_that_is_not_a_function_is_reported(value):
    report = check(value)
    assert report.status == "error" and f"of type `{type(value).__name__}`" in report.message


@pytest.mark.parametrize("given", [(), (right_answer, 3), (right_answer, right_answer)])
def test_a_check_accepts_the_function_and_nothing_else(given):
    report = check(*given)
    assert report.status == "error" and "nothing else: `tl.checks.split_heads(split_heads)`" in report.message


def test_a_module_counts_as_a_function_and_its_class_does_not():
    class Split(torch.nn.Module):
        def forward(self, x, n_heads):
            return right_answer(x, n_heads)

    assert check(Split()).status == "correct"
    assert check(Split).status == "error"


def test_a_stub_and_a_function_that_calls_a_stub_are_not_attempted():
    def stub(x, n_heads):
        raise NotImplementedError

    def calls(x, n_heads):
        return stub(x, n_heads)

    assert (check(stub).status, check(stub).message) == ("not attempted", "")
    report = check(calls)
    assert report.status == "not attempted"
    assert report.message == "Your function calls `stub`, which is not written yet. Write `stub` first."


def test_a_card_offers_the_courses_function_for_an_unwritten_one():
    def merge_heads(x):
        raise NotImplementedError

    message = check(lambda x, n_heads: merge_heads(x)).message
    assert message.endswith(", or use the course's function: `merge_heads = tl.checks.merge_heads.reference`.")


def not_attempted(exercise, function):
    return exercise(function).status == "not attempted"


def test_a_not_implemented_error_of_pytorch_is_no_stub():
    """PyTorch raises `NotImplementedError` for meta tensors, integers, a missing `forward` and (after 2.4) bools."""
    checks = tl.checks
    report = checks.causal_mask(lambda seq: torch.empty(seq, device="meta").cpu())
    assert report.status == "error" and "`NotImplementedError`" in report.message
    assert not not_attempted(checks.masked_attention, lambda query, key, value, mask: mask.softmax(-1))
    assert not not_attempted(checks.padding_mask, lambda lengths, seq: lengths.softmax(0))
    exchanged = checks.next_token_loss(lambda logits, tokens: F.cross_entropy(tokens[:, 1:], logits[:, :-1]))
    assert exchanged.status == "error" and "not written yet" not in exchanged.message
    normalized = checks.embed(lambda tokens, table: F.layer_norm(tokens, tokens.shape[-1:]))
    assert normalized.status == "error" and ".reference`" not in normalized.message

    class Misspelt(torch.nn.Module):
        def foward(self, x, n_heads):
            return right_answer(x, n_heads)

    assert check(Misspelt()).status == "error"


# Functions that the check cannot inspect


def linear_attention_of_each_head(query, key, value):
    def of_one(q, k, v):
        q, k = F.elu(q) + 1, F.elu(k) + 1
        return torch.mm(q, torch.mm(k.t(), v)) / torch.mv(q, k.sum(0)).unsqueeze(1)

    return vmap(vmap(of_one))(query, key, value)


def every_pair_of_each_head(query, key, value):
    def of_one(q, k, v):
        weights = (F.elu(q) + 1) @ (F.elu(k) + 1).t()
        return weights / weights.sum(-1, keepdim=True) @ v

    return vmap(vmap(of_one))(query, key, value)


def test_vmap_hides_nothing_from_a_check():
    """Inside vmap, tensors are wrappers that are invalid outside vmap."""
    checks = tl.checks
    assert checks.linear_attention(linear_attention_of_each_head).status == "correct"
    table = checks.linear_attention(every_pair_of_each_head)
    assert table.status == "incorrect" and "compare every query with every key" in table.message

    def attention(query, key, value):
        def of_one(q, k, v):
            return (q @ k.t() * 0.37).softmax(-1) @ v

        return vmap(of_one)(*(x.flatten(0, -3) for x in (query, key, value))).unflatten(0, query.shape[:-2])

    assert checks.attention(attention).stage == "scale"

    def layer_norm(x, weight, bias, eps):
        def of_one(v):
            return (v - v.mean()) / (v.var(unbiased=False) + eps).sqrt() * weight * 1.3 + bias

        return vmap(vmap(of_one))(x)

    assert checks.layer_norm(layer_norm).stage == "output"


def raise_fault(*arguments):
    raise RuntimeError("a fault of the check")


FAULT_MESSAGE = "This is a fault of the check, not yours. Please report it"


@pytest.mark.parametrize("part", ["gradients.describe_wrong_gradients", "describe.describe_inputs_tried"])
def test_a_fault_of_the_check_refuses_no_right_answer(part, monkeypatch):
    monkeypatch.setattr(f"transformer_lab.checks.{part}", raise_fault)
    report = check(lambda x, n_heads: right_answer(x, n_heads))
    assert report.status == "correct" and FAULT_MESSAGE in report.message and "test_checks_survive.py" in report.message


def test_facts_that_the_check_cannot_see_refuse_no_right_answer(monkeypatch):
    monkeypatch.setattr(tl.checks.linear_attention, "facts", raise_fault)
    report = tl.checks.linear_attention(linear_attention_of_each_head)
    assert report.status == "correct" and FAULT_MESSAGE in report.message
    assert tl.checks.linear_attention(lambda query, key, value: value).status != "correct"


@pytest.mark.parametrize(
    "part", ["smallest_input.failing_case", "diagnose.recognize", "steps.find_stages", "smallest_input.evidence_text"]
)
def test_a_fault_of_the_check_is_not_shown_as_the_learners(part, monkeypatch):
    monkeypatch.setattr(f"transformer_lab.checks.{part}", raise_fault)
    report = check(lambda x, n_heads: right_answer(x, n_heads) * 1.5)
    assert report.status == "incorrect" and FAULT_MESSAGE in report.message


def test_a_fault_of_the_check_before_its_verdict_is_reported(monkeypatch):
    monkeypatch.setattr("transformer_lab.checks.probes.observe", raise_fault)
    report = check(lambda x, n_heads: right_answer(x, n_heads))
    assert report.status == "error" and FAULT_MESSAGE in report.message


def test_a_fault_in_a_hunt_is_reported_too(monkeypatch):
    module = sys.modules["transformer_lab.checks.hunt"]  # `tl.checks.hunt` is the function, not the module
    monkeypatch.setattr(module, "all_accepted_text", raise_fault)
    report = tl.checks.hunt(check, lambda f: f(torch.ones(2, 3, 4), 2))
    assert report.status == "error" and FAULT_MESSAGE in report.message


# Functions that end only when the test ends: a thread that is left running would slow down all later tests

test_is_over = threading.Event()


@pytest.fixture(autouse=True)
def end_all_threads():
    test_is_over.clear()
    yield
    test_is_over.set()
    deadline = time.monotonic() + 10
    while any_thread_is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any_thread_is_alive()
    threads.clear()


def recording_thread(function):
    """Record the thread in which a function runs; reading stack frames would show more, but can crash Python 3.11."""

    @functools.wraps(function)
    def recorded(*arguments):
        threads.append(threading.current_thread())
        return function(*arguments)

    return recorded


threads = []


def any_thread_is_alive():
    for thread in threads:
        thread.join(0.2)  # a thread is alive for a moment after its work is done
    return any(thread.is_alive() for thread in threads)


@recording_thread
def endless(x, n_heads):
    while True:
        pass


@recording_thread
def endless_ignoring_errors(x, n_heads):
    while not test_is_over.is_set():
        try:
            while not test_is_over.is_set():
                pass
        except:  # noqa: E722
            pass


@recording_thread
def endless_printing(x, n_heads):
    while True:
        print("a flood " * 1000)


@recording_thread
def sleeps(x, n_heads):
    test_is_over.wait(60)


ENDLESS_FUNCTIONS = (endless, endless_ignoring_errors, endless_printing, sleeps)


@pytest.mark.parametrize("function", ENDLESS_FUNCTIONS)
def test_a_function_that_does_not_end_is_stopped(function, monkeypatch):
    monkeypatch.setattr("transformer_lab.checks.observe.TIME_LIMIT", 0.5)
    start = time.monotonic()
    report = check(function)
    assert report.status == "error" and "did not come to an end" in report.message
    assert time.monotonic() - start < 5
    assert ("still running" in report.message) == any_thread_is_alive()
    if function is endless:
        assert "It was stopped in line " in report.message


@pytest.mark.parametrize("function, presses", [*((function, 1) for function in ENDLESS_FUNCTIONS), (sleeps, 3)])
def test_the_stop_button_stops_the_function_and_the_cell(function, presses, capsys):
    """If the button is pressed while the function runs, the rest of the cell is skipped, and one card says so."""
    press = threading.Thread(target=press_stop, args=(presses,))
    press.start()
    with pytest.raises(KeyboardInterrupt) as raised:
        check(function)
    press.join()
    printed = capsys.readouterr().out
    assert raised.value._render_traceback_() == ["The check was stopped."]
    assert printed.startswith("✗ split_heads: error\n\n  You stopped the check")
    assert ("still running" in printed) == any_thread_is_alive()
    assert not any_thread_is_alive() or function in (endless_ignoring_errors, sleeps)
    if function is endless:
        assert re.search(r"It was stopped in line [23] of `endless`: `(while True:|pass)`", printed)
    assert tl.checks.record.read()["split_heads"] == {"checks": 1}


def test_the_stop_button_stops_a_hunt(capsys):
    press = threading.Thread(target=press_stop)
    press.start()
    with pytest.raises(KeyboardInterrupt):
        tl.checks.hunt(check, lambda f: endless(f, 3))
    press.join()
    printed = capsys.readouterr().out
    assert "You stopped the check, and your test with it." in printed and not any_thread_is_alive()


def test_the_stop_button_works_without_threads(monkeypatch, capsys):
    """If there are no threads, `KeyboardInterrupt` is raised in the function itself."""
    monkeypatch.setattr(threading.Thread, "start", refuse_to_start)
    with pytest.raises(KeyboardInterrupt):
        check(function_that_raises(KeyboardInterrupt()))
    assert "You stopped the check" in capsys.readouterr().out
    with pytest.raises(KeyboardInterrupt):
        tl.checks.hunt(check, function_that_raises(KeyboardInterrupt()).__get__(1))
    assert "You stopped the check" in capsys.readouterr().out


def press_stop(presses=1):
    """Send the signal of a notebook's stop button as soon as an endless function runs."""
    while not threads:
        time.sleep(0.01)
    for _ in range(presses):
        signal.raise_signal(signal.SIGINT)  # Python runs the signal's handler in the main thread
        time.sleep(0.1)


def test_a_suspended_machine_rejects_no_right_answer(monkeypatch):
    clock, suspended_seconds = time.monotonic, []
    monkeypatch.setattr(time, "monotonic", lambda: clock() + sum(suspended_seconds))

    def interrupted(x, n_heads):
        if not suspended_seconds:
            suspended_seconds.append(3600)  # seconds
            time.sleep(0.5)
        return right_answer(x, n_heads)

    assert check(interrupted).status == "correct" and suspended_seconds


def test_the_limits_add_up_to_nine_seconds_at_most():
    from transformer_lab.checks import observe

    assert observe.TIME_LIMIT + observe.GRACE_PERIOD <= 9


SLOW_MODULE = "import time\ntime.sleep(2)\nready = True\n"


def test_an_import_may_exceed_the_time_limit(tmp_path, monkeypatch):
    check(right_answer)  # the first check takes longer
    monkeypatch.setattr("transformer_lab.checks.observe.TIME_LIMIT", 1)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "slow_to_load.py").write_text(SLOW_MODULE)

    def loads(x, n_heads):
        import slow_to_load

        assert slow_to_load.ready
        return right_answer(x, n_heads)

    assert check(loads).status == "correct"
    del sys.modules["slow_to_load"]

    def loads_and_never_ends(x, n_heads):
        import slow_to_load

        assert slow_to_load.ready
        endless(x, n_heads)

    assert "did not come to an end" in check(loads_and_never_ends).message
    assert sys.modules.pop("slow_to_load").ready


def test_an_import_that_does_not_end_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("transformer_lab.checks.observe.TIME_LIMIT", 0.1)
    monkeypatch.setattr("transformer_lab.checks.observe.IMPORT_TIME_LIMIT", 0.1)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "slower_to_load.py").write_text(SLOW_MODULE.replace("2", "4"))

    def loads(x, n_heads):
        import slower_to_load

        return slower_to_load.ready

    assert "still running" in check(loads).message


def test_endless_recursion_is_reported():
    def again(x, n_heads):
        return again(x, n_heads)

    report = check(again)
    assert report.status == "error" and "calls itself endlessly" in report.message


# Side effects


def session_state():
    return {
        "torch": torch.get_rng_state().tolist(),
        "random": random.getstate(),
        "numpy": repr(np.random.get_state()),
        "dtype": torch.get_default_dtype(),
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "device": str(torch.empty(0).device),
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "anomaly": torch.is_anomaly_enabled(),
        "precision": torch.get_float32_matmul_precision(),
        "print": repr(torch.ones(1) / 3),
        "recursion": sys.getrecursionlimit(),
        "streams": (sys.stdout, sys.stderr),
        "warnings": list(warnings.filters),
        "numpy errors": np.geterr(),
        "folder": os.getcwd(),
        "trace": sys.gettrace(),
        "autocast": torch.is_autocast_enabled("cpu"),
    }


def changes_session_settings(x, n_heads):
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.set_default_device("meta")
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(True)
    torch.autograd.set_detect_anomaly(True)
    torch.set_float32_matmul_precision("medium")
    torch.set_printoptions(precision=1)
    sys.setrecursionlimit(5000)
    sys.stdout = sys.stderr = None
    warnings.simplefilter("error")
    np.seterr(all="raise")
    os.chdir("/")
    return right_answer(x, n_heads)


@pytest.mark.parametrize(
    "function", [right_answer, changes_session_settings, function_that_raises(ValueError("no")), endless]
)
def test_the_session_stays_as_it_was(function, monkeypatch):
    monkeypatch.setattr("transformer_lab.checks.observe.TIME_LIMIT", 0.5)
    before = session_state()
    check(function)
    after = session_state()
    assert {name for name in before if before[name] != after[name]} == set()


@pytest.mark.parametrize(
    "setting",
    [
        lambda: torch.set_default_dtype(torch.float64),
        lambda: torch.set_grad_enabled(False),
        lambda: torch.set_default_device("meta"),
        lambda: torch.autograd.set_detect_anomaly(True),
    ],
)
def test_a_session_with_other_settings_gets_the_same_verdicts(setting):
    before = torch.get_default_dtype(), torch.is_grad_enabled(), torch.is_anomaly_enabled()
    try:
        setting()
        assert check(right_answer).status == "correct"
        assert check(lambda x, n: x.reshape(x.shape[0], n, x.shape[1], -1)).mistake == "view_alone"
        assert check(lambda x, n: right_answer(x.detach(), n)).status == "incorrect"
    finally:
        torch.set_default_dtype(before[0])
        torch.set_grad_enabled(before[1])
        torch.autograd.set_detect_anomaly(before[2])
        torch.set_default_device(None)


def test_a_changed_input_is_reported():
    def adds(x, n_heads):
        result = right_answer(x, n_heads).clone()
        x += 1
        return result

    report = check(adds)
    assert report.status == "incorrect" and "changes its argument `x`" in report.message


def test_a_function_that_keeps_something_is_reported():
    calls = []

    def counts(x, n_heads):
        calls.append(x)
        return right_answer(x, n_heads) + len(calls)

    assert "keep something from one call to the next" in check(counts).message


def table_by_length(seq, table=None, kept={}):  # noqa: B006
    if table is not None:
        return table
    if not kept:
        kept[0] = torch.ones(seq, seq).tril().bool()
    return kept[0][:seq, :seq]


mask_so_far = None


def mask_from_a_global(seq):
    global mask_so_far
    if mask_so_far is None:
        mask_so_far = torch.ones(seq, seq).tril().bool()
    return mask_so_far[:seq, :seq]


def mask_on_the_function(seq):
    if not hasattr(mask_on_the_function, "mask"):
        mask_on_the_function.mask = []
    mask_on_the_function.mask.append(torch.ones(seq, seq).tril().bool())
    return mask_on_the_function.mask[0][:seq, :seq]


mask_on_the_function.mask = []


def mask_in_a_closure():
    masks = []

    def causal_mask(seq):
        masks.append(torch.ones(seq, seq).tril().bool())
        return masks[0][:seq, :seq]

    return causal_mask


class Buffer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = None

    def forward(self, seq):
        if self.mask is None:
            self.mask = torch.ones(seq, seq).tril().bool()
        return self.mask[:seq, :seq]


@functools.cache
def mask_for_any_length(_):
    return torch.ones(requested_lengths[-1], requested_lengths[-1]).tril().bool()


requested_lengths = []


def mask_from_a_cache(seq):
    requested_lengths.append(seq)
    return mask_for_any_length(0)[:seq, :seq]


@pytest.mark.parametrize(
    "function, name",
    [
        (table_by_length, "`kept`"),
        (mask_from_a_global, "`mask_so_far`"),
        (mask_on_the_function, "`mask_on_the_function.mask`"),
        (mask_in_a_closure(), "`masks`"),
        (Buffer(), ""),
        (mask_from_a_cache, "`mask_for_any_length`"),
    ],
)
def test_what_is_stored_for_one_input_and_returned_for_another_is_reported(function, name):
    report = tl.checks.causal_mask(function)
    assert (report.status, report.mistake) == ("incorrect", "kept_between_calls")
    assert (
        report.message.startswith("Called alone, your function is right with larger input") and name in report.message
    )


def test_a_list_that_is_only_read_is_not_suspected():
    """The function would be right if ``factors`` were empty, but it does not change this list."""
    factors = [2.0]

    def times_all(x, n_heads):
        for factor in factors:
            x = x * factor
        return right_answer(x, n_heads)

    assert check(times_all).mistake != "kept_between_calls"


def test_the_project_notices_a_pasted_function_that_is_wrong(capsys):
    """Nothing else reveals a wrong mask: the functions work with any mask, and seeing the future lowers the loss."""
    project = nbformat.read(Path(__file__).parents[2] / "chapters" / "assignments" / "project.ipynb", 4)
    given_source, check_source = (
        next(cell.source for cell in project.cells if text in cell.source)
        for text in ("causal_mask = tl.checks.causal_mask.reference", "for name in names.split():")
    )
    names = {"tl": tl}
    exec(given_source, names)
    exec(check_source, names)
    assert capsys.readouterr().out == ""  # the course's own functions are not checked
    names["causal_mask"] = lambda seq: torch.ones(seq, seq).triu().bool()
    names["split_heads"] = right_answer
    exec(check_source, names)
    printed = capsys.readouterr().out
    assert "✗ causal_mask: incorrect" in printed and "✓ split_heads: correct" in printed


def test_printed_text_is_shown_up_to_a_limit(capsys):
    def talks(x, n_heads):
        print("x is", tuple(x.shape))
        return right_answer(x, n_heads)

    report = check(talks)
    assert report.status == "correct" and "| x is (2, 7, 15)" in capsys.readouterr().out

    def floods(x, n_heads):
        print("flood\n" * 100_000)
        return right_answer(x, n_heads)

    assert check(floods).status == "correct"
    assert len(capsys.readouterr().out) < 1000


def test_a_function_that_draws_random_numbers_is_incorrect():
    for draw in (torch.rand_like, lambda x: random.random(), lambda x: np.random.rand()):
        report = check(lambda x, n, draw=draw: right_answer(x + draw(x), n))
        assert report.status == "incorrect" and "returns a different result each time" in report.message
        assert "smallest input" not in report.message


def test_a_check_may_run_in_a_thread():
    reports = []
    thread = threading.Thread(target=lambda: reports.append(check(right_answer)))
    thread.start()
    thread.join()
    assert reports[0].status == "correct"


def test_exit_in_a_notebook_ends_the_function_only(tmp_path):
    from notebooks import execute

    cells = [
        "import transformer_lab as tl",
        "def leave(x, n_heads):\n    exit()",
        "report = tl.checks.split_heads(leave)",
        "print(report.status)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    execute(notebook, tmp_path)
    assert notebook.cells[3].outputs[0].text == "error\n"
    card = notebook.cells[2].outputs[0].data
    assert "exit()" in card["text/html"] and "Hint 1" in card["text/html"] and "✗" in card["text/plain"]
    assert builtins.exit is not None


def test_the_stop_button_of_a_notebook_stops_the_cell(tmp_path):
    """The card appears with one line for the error, and neither the function nor the rest of the cell continues."""
    source = f"""
import pathlib, threading
import transformer_lab as tl

def forever(x, n_heads):
    pathlib.Path({str(tmp_path / "begun")!r}).touch()
    while True:
        pass

tl.checks.split_heads(forever)
print("The rest of the cell ran.")
"""
    outputs = []
    manager, kernel = start_new_kernel()
    try:
        kernel.execute(source)
        while not (tmp_path / "begun").exists():
            time.sleep(0.05)
        manager.interrupt_kernel()
        while (message := kernel.get_iopub_msg(timeout=60))["content"].get("execution_state") != "idle":
            outputs.append(message)
        kernel.execute_interactive("print(threading.enumerate())", timeout=60, output_hook=outputs.append)
    finally:
        kernel.stop_channels()
        manager.shutdown_kernel(now=True)
    (card,) = (each["content"]["data"]["text/plain"] for each in outputs if each["msg_type"] == "display_data")
    assert "You stopped the check, and your function with it." in card and re.search(
        "of `forever`: `(while True:|pass)`", card
    )
    (error,) = (each["content"]["traceback"] for each in outputs if each["msg_type"] == "error")
    assert error == ["The check was stopped."]
    printed = "".join(each["content"]["text"] for each in outputs if each["msg_type"] == "stream")
    assert "MainThread" in printed and "(run)" not in printed and "The rest" not in printed


def test_after_a_syntax_error_the_card_says_that_the_function_is_an_older_one(tmp_path):
    from notebooks import execute

    cells = [
        "import transformer_lab as tl",
        "def split_heads(x, n_heads):\n    raise NotImplementedError",
        "def split_heads(x, n_heads):\n    return x.reshape(",
        "tl.checks.split_heads(split_heads)",
        "def split_heads(x, n_heads):\n    return x",
        "tl.checks.split_heads(split_heads)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.cells[2].metadata["tags"] = ["raises-exception"]
    execute(notebook, tmp_path)
    first_card, second_card = (notebook.cells[number].outputs[0].data["text/plain"] for number in (3, 5))
    assert first_card.startswith("○ split_heads: not attempted\n\n  Your newest cell with `split_heads` ended with")
    assert "SyntaxError" in first_card and "SyntaxError" not in second_card


def test_only_the_cpu_time_of_a_function_counts_toward_the_limit(monkeypatch):
    if not hasattr(time, "pthread_getcpuclockid"):
        pytest.skip("this system does not report the CPU time of a thread")
    monkeypatch.setattr("transformer_lab.checks.observe.TIME_LIMIT", 1)

    def busy_function(seconds):
        """A function that uses ``seconds`` of CPU time over all its calls, and sleeps three times as long."""
        seconds_left = [seconds]

        def function(x, n_heads):
            while seconds_left[0] > 0:
                start = time.thread_time()
                while (used := time.thread_time() - start) < 0.005:
                    pass
                seconds_left[0] -= used
                time.sleep(0.015)
            return right_answer(x, n_heads)

        return function

    check(right_answer)  # the first check takes longer
    assert check(busy_function(0.3)).status == "correct"  # at least 1.2 seconds of wall time
    assert "did not come to an end within 1 seconds" in check(busy_function(3)).message


def test_the_checks_own_work_does_not_count_toward_the_limit(monkeypatch):
    """The known outcomes are computed again, which takes longer than the time limit for a function."""
    monkeypatch.setattr("transformer_lab.checks.observe.TIME_LIMIT", 0.4)
    reference = check.reference

    def slow(x, n_heads):
        time.sleep(0.1)
        return reference(x, n_heads)

    monkeypatch.setattr(check, "reference", slow)
    for cached_property in ("probes", "expected", "known"):
        monkeypatch.delitem(check.__dict__, cached_property, raising=False)
    assert check(lambda x, n_heads: right_answer(x, n_heads)).status == "correct"
    for cached_property in ("probes", "expected", "known"):
        check.__dict__.pop(cached_property, None)


def test_pytorch_uses_one_thread_inside_a_check():
    """On a busy machine, the threads of a small matrix product wait for one another."""
    before, counts = torch.get_num_threads(), []
    try:
        torch.set_num_threads(2)
        check(lambda x, n_heads: counts.append(torch.get_num_threads()) or right_answer(x, n_heads))
        assert set(counts) == {1} and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def refuse_to_start(thread):
    raise RuntimeError("can't start new thread")


def test_without_threads_a_check_runs_in_the_calling_thread(monkeypatch, capsys):
    """Python in a browser has no threads."""

    monkeypatch.setattr(threading.Thread, "start", refuse_to_start)
    before = session_state()
    assert check(right_answer).status == "correct"
    assert check(lambda x, n_heads: print("x") or x).status == "incorrect" and "| x" in capsys.readouterr().out
    assert check(function_that_raises(SystemExit(1))).status == "error"
    assert {name for name, value in session_state().items() if before[name] != value} == set()


def test_a_function_that_raises_on_the_cpu_is_not_run_on_the_device():
    """An index out of range is an error on the CPU, but makes a GPU unusable for the rest of the session."""
    softmax, inputs = tl.checks.softmax, []
    probes = [softmax.probes[0], Probe("device", ("the device's input",), this_device_only=True)]

    def out_of_range(x, dim=None):
        inputs.append(x)
        return torch.arange(3)[torch.tensor([5])]

    outcomes = Outcomes(SimpleNamespace(**{**vars(softmax), "probes": probes}), out_of_range)
    assert outcomes[1] is outcomes[0] and isinstance(outcomes[0].error, IndexError)
    assert not any(isinstance(x, str) for x in inputs)


def test_a_stop_that_hits_a_callback_is_not_reported(monkeypatch):
    """Python reports an error in a weak reference's callback; a stop must not be reported, since it is sent again."""
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda ignored: reported.append(ignored.exc_type))

    def callback_that_raises(error):
        def callback(reference):
            raise error

        referent = threading.Event()
        reference = weakref.ref(referent, callback)
        del referent
        assert reference() is None

    with _stopped_unreported():
        callback_that_raises(Stopped)
        callback_that_raises(ValueError)
    callback_that_raises(Stopped)
    assert reported == [ValueError, Stopped]
