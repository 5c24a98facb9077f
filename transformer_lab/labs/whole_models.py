"""The course's models in WholeLab, and their training loss as a curve with marks on both axes."""

import json
import math
from pathlib import Path

_FOLDER = Path(__file__).parent
WIDTH, TOP, BOTTOM = 300, 4, 80  # the size of the drawing
TICKS = (1, 0.1, 0.01, 0.001)  # the marks on the axis of the loss


def course_models():
    """Return the course's models, their checkpoints, and the measurements of their training, with losses as curves."""
    final, learning = (
        json.loads((_FOLDER / f"whole_{name}.json").read_text("utf-8")) for name in ("weights", "learning")
    )
    files = [_FOLDER / f"whole_checkpoint_{step}.json" for step in learning["steps"][:-1]]
    curves = {family: loss_curve(losses, learning["steps"]) for family, losses in learning.pop("loss").items()}
    return final, [json.loads(file.read_text("utf-8")) for file in files], learning | {"curves": curves}


def loss_curve(losses, steps):
    """Return the path of the losses, the marks with their heights, and the position and loss of each checkpoint.

    Each loss is the mean over the same number of training steps, on a logarithmic axis. The checkpoints ``steps`` are
    equally spaced, as on the slider below the curve.
    """
    steps_per_loss = steps[-1] / len(losses)
    logs = [math.log(loss) for loss in losses]
    low, high = min(logs), max(logs)

    def x_of(step):
        i = min(max(sum(each <= step for each in steps), 1), len(steps) - 1)
        fraction = (step - steps[i - 1]) / (steps[i] - steps[i - 1])
        return round(WIDTH * (i - 1 + fraction) / (len(steps) - 1), 1)

    def y_of(log):
        return round(BOTTOM - (BOTTOM - TOP) * (log - low) / (high - low), 1)

    def log_at(step):
        place = min(max(step / steps_per_loss - 0.5, 0), len(logs) - 1)
        i = min(int(place), len(logs) - 2)
        return logs[i] + (place - i) * (logs[i + 1] - logs[i])

    middles = [(i + 0.5) * steps_per_loss for i in range(len(losses))]
    points = [f"{x_of(step)} {y_of(log_at(step))}" for step in (0, *middles, steps[-1])]
    return {
        "line": f"M{'L'.join(points)}",
        "marks": [[mark, y_of(math.log(mark))] for mark in TICKS if math.log(mark) >= low],
        "dots": [[x_of(step), y_of(log_at(step)), f"{math.exp(log_at(step)):#.2g}"] for step in steps],
    }
