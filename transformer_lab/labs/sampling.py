"""The sampling lab: how temperature, top-k, top-p and min-p choose the next token of a real model."""

import json
from pathlib import Path
from typing import ClassVar

import torch
import traitlets

from ..arguments import format_value, is_number
from .lab import Lab, as_integer, as_number, as_option, script, style

MAX_STORED_TOKENS = 300  # how many tokens of each prompt are stored one by one; sums are stored for the other tokens
STEPS_PER_UNIT = {"temperature": 20, "top_p": 100, "min_p": 100}  # steps per unit; sums are stored for these steps only
RANGES = {"temperature": (0, 2), "top_p": (0.01, 1), "min_p": (0, 1)}
MAX_DRAWS, MAX_SEED = 1000, 9999


def stored_prompt(key, text, logits, decode, chat=False):
    """Return what the lab stores for one prompt: its best tokens one by one, and exact sums over all others.

    The sum over the other tokens depends on the temperature, so the lab stores one sum for each temperature that it
    offers. A cut-off may fall among the other tokens: if a set of kept tokens includes tokens that are not stored, the
    lab stores the size of the set and its total probability.
    """
    logits = logits.double().sort(descending=True, stable=True)
    values, token_ids = logits.values, logits.indices.tolist()
    best = values[:MAX_STORED_TOKENS]
    thresholds = torch.arange(1, STEPS_PER_UNIT["top_p"] + 1, dtype=torch.float64) / STEPS_PER_UNIT["top_p"]
    others, top_p_sets, min_p_sets = [], [], []
    for step in range(1, RANGES["temperature"][1] * STEPS_PER_UNIT["temperature"] + 1):
        p = ((values - values[0]) * STEPS_PER_UNIT["temperature"] / step).softmax(0)
        cumulative = p.cumsum(0)
        others.append(p[MAX_STORED_TOKENS:].sum().item())
        counts = torch.searchsorted(cumulative, thresholds[:-1] - 1e-12) + 1
        top_p_sets.append([[n, _round_digits(cumulative[n - 1])] for n in counts.tolist() if n > MAX_STORED_TOKENS])
        counts = torch.searchsorted(-p, -thresholds * p[0], right=True)
        min_p_sets.append([[n, _round_digits(cumulative[n - 1])] for n in counts.tolist() if n > MAX_STORED_TOKENS])
    return {
        "key": key,
        "text": text,
        "chat": chat,
        "vocab_size": len(values),
        "tokens": [decode(token_id) for token_id in token_ids[:MAX_STORED_TOKENS]],
        "logits": [round(x, 7) for x in best.tolist()],
        "others": [_round_digits(x) for x in others],  # the total probability of the other tokens, for each temperature
        # For each temperature and the largest values of top_p: the number of kept tokens and their total probability.
        "nucleus": top_p_sets,
        "likely": min_p_sets,  # for each temperature and the smallest values of min_p: the same two numbers
    }


def _round_digits(x):
    return float(f"{float(x):.9g}")


def _read_prompts():
    path = Path(__file__).with_name("sampling_prompts.json")
    return json.loads(path.read_text("utf-8"))["prompts"] if path.exists() else []


PROMPTS = _read_prompts()
PROMPT_KEYS = [prompt["key"] for prompt in PROMPTS]


class SamplingLab(Lab):
    """Choose the next token of a real model: set the temperature, cut off tokens with top-k, top-p or min-p, and draw.

    The model is SmolLM2-135M-Instruct. Its scores after each prompt are stored, so the lab needs no weights.
    The temperature is applied first. Then top-k, top-p and min-p are applied in this order; each step keeps the most
    likely of the tokens that the previous step has kept. At the end, the probabilities of the kept tokens are divided
    by their sum.

    Parameters
    ----------
    prompt : str, optional
        The key of a stored prompt.
    temperature : float, optional
        The temperature, from 0 (greedy: the highest score wins) to 2, in steps of 0.05.
    top_k : int, optional
        The number of tokens to keep, from 1 to 300; all when left out.
    top_p : float, optional
        Keep the most likely tokens until their probabilities add up to this number, from 0.01 to 1 in steps of 0.01;
        1 keeps all.
    min_p : float, optional
        Keep the tokens whose probability is at least this fraction of the highest probability, from 0 to 1 in steps of
        0.01; 0 keeps all.
    seed : int, optional
        The seed, from 0 to 9999. The seed and the position of a draw determine its random number; a ``torch.Generator``
        with this seed draws different numbers.
    draws : int, optional
        The number of tokens to draw, up to 1000.
    controls : sequence of str, optional
        The groups of controls to show: any of ``"prompt"``, ``"temperature"``, ``"cut"`` and ``"draw"``; all when left
        out.

    Attributes
    ----------
    prompt, temperature, top_k, top_p, min_p, seed, draws
        What the reader has set.
    tokens : list of str
        The stored tokens, the most likely first.
    before, after : Tensor, shape (301,), float64
        The probabilities of the stored tokens and, in the last entry, of all other tokens together: before and after
        the cut-off.
    n_kept : int
        The number of tokens in the whole vocabulary that can be drawn.
    numbers : Tensor, shape (draws,), float64
        The random numbers, from 0 to 1.
    drawn : list of int
        The positions in ``after`` on which the random numbers fall.

    Raises
    ------
    TypeError, ValueError
        If a setting is not a number, is out of range or is between two steps.

    Examples
    --------
    >>> lab = SamplingLab("france", temperature=1, top_k=2)
    >>> lab
    SamplingLab(prompt='france', temperature=1, top_k=2, top_p=1, min_p=0, seed=0, draws=0)
    >>> [f"{token} {p:.2f}" for token, p in zip(lab.tokens[:3], lab.after)]
    [' Paris 0.92', ' the 0.08', ' London 0.00']
    """

    _esm = script("sampling_maths", "sampling_words", "sampling")
    _css = style("sampling")
    repr_traits = ("prompt", "temperature", "top_k", "top_p", "min_p", "seed", "draws")
    groups = ("prompt", "temperature", "cut", "draw")
    constants: ClassVar[dict] = {"prompts": PROMPTS}

    prompt = traitlets.Any().tag(sync=True)  # of type Any, so that the validators below raise the package's own errors
    temperature = traitlets.Any().tag(sync=True)
    top_k = traitlets.Any(allow_none=True).tag(sync=True)
    top_p = traitlets.Any().tag(sync=True)
    min_p = traitlets.Any().tag(sync=True)
    seed = traitlets.Any().tag(sync=True)
    draws = traitlets.Any().tag(sync=True)
    prompts = traitlets.List(PROMPTS).tag(sync=True)
    limits = traitlets.Dict().tag(sync=True)

    def __init__(self, prompt="sea", *, temperature=1, top_k=None, top_p=1, min_p=0, seed=0, draws=0, controls=None):
        super().__init__(
            prompt=prompt,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            seed=seed,
            draws=draws,
            limits={
                **RANGES,
                "steps": STEPS_PER_UNIT,
                "stored": MAX_STORED_TOKENS,
                "draws": MAX_DRAWS,
                "seed": MAX_SEED,
            },
            controls=controls,
        )

    @traitlets.validate("prompt")
    def _check_prompt(self, proposal):
        return as_option("prompt", proposal.value, PROMPT_KEYS)

    @traitlets.validate("temperature", "top_p", "min_p")
    def _check_step(self, proposal):
        name = proposal.trait.name
        value, steps = as_number(name, proposal.value, *RANGES[name]), STEPS_PER_UNIT[name]
        if abs(value * steps - round(value * steps)) > 1e-6:
            raise ValueError(f"{name} must be a multiple of {1 / steps:g}, got {format_value(value)}")
        return value

    @traitlets.validate("top_k")
    def _check_top_k(self, proposal):
        if proposal.value is None:
            return None
        if is_number(proposal.value) and proposal.value > MAX_STORED_TOKENS:
            raise ValueError(f"top_k must be from 1 to {MAX_STORED_TOKENS}, or None for all, got {proposal.value}")
        return as_integer("top_k", proposal.value, 1, MAX_STORED_TOKENS)

    @traitlets.validate("seed", "draws")
    def _check_count(self, proposal):
        name = proposal.trait.name
        return as_integer(name, proposal.value, 0, self.limits[name] if self.limits else MAX_SEED)

    @property
    def _prompt_data(self):
        return PROMPTS[PROMPT_KEYS.index(self.prompt)]

    @property
    def tokens(self):
        return list(self._prompt_data["tokens"])

    @property
    def before(self):
        logits = torch.tensor(self._prompt_data["logits"], dtype=torch.float64)
        if self.temperature == 0:
            one_hot = torch.zeros(len(logits) + 1, dtype=torch.float64)
            one_hot[0] = 1
            return one_hot
        others = self._prompt_data["others"][round(self.temperature * STEPS_PER_UNIT["temperature"]) - 1]
        best = ((logits - logits[0]) / self.temperature).softmax(0)
        return torch.cat([best * (1 - others), torch.tensor([others], dtype=torch.float64)])

    @property
    def n_kept(self):
        return self._kept_count_and_mass()[0]

    @property
    def after(self):
        n_kept, mass = self._kept_count_and_mass()
        after = self.before
        after[min(n_kept, MAX_STORED_TOKENS) : MAX_STORED_TOKENS] = 0
        after[-1] = max(mass - after[:-1].sum().item(), 0) if n_kept > MAX_STORED_TOKENS else 0
        return after / after.sum()

    @property
    def numbers(self):
        return torch.tensor([_random_number(self.seed, draw) for draw in range(self.draws)], dtype=torch.float64)

    @property
    def drawn(self):
        last = min(self.n_kept - 1, MAX_STORED_TOKENS)  # rounding must not select a token that is cut off
        indices = torch.searchsorted(self.after.cumsum(0), self.numbers, right=True)
        return indices.clamp(max=last).tolist()

    def _kept_count_and_mass(self):
        """Return the number of kept tokens, which are always the most likely, and their total probability."""
        before, stored = self.before, self._prompt_data
        if self.temperature == 0:
            return 1, 1.0
        cumulative = before[:-1].cumsum(0)
        row = round(self.temperature * STEPS_PER_UNIT["temperature"]) - 1
        n, mass = stored["vocab_size"], 1.0
        if self.top_k is not None:
            n, mass = self.top_k, cumulative[self.top_k - 1].item()
        step = round(self.top_p * STEPS_PER_UNIT["top_p"])
        if step < STEPS_PER_UNIT["top_p"]:
            n_below = int(
                (cumulative[: min(n, MAX_STORED_TOKENS)] < step / STEPS_PER_UNIT["top_p"] * mass - 1e-12).sum()
            )
            if n_below < MAX_STORED_TOKENS:
                n, mass = n_below + 1, cumulative[n_below].item()
            else:
                sets = stored["nucleus"][row]
                n, mass = sets[step - STEPS_PER_UNIT["top_p"] + len(sets)]
        step = round(self.min_p * STEPS_PER_UNIT["min_p"])
        if step:
            sets = stored["likely"][row]
            if step <= len(sets):
                n, mass = min((n, mass), tuple(sets[step - 1]))
            else:
                n_likely = int((before[:-1] >= step / STEPS_PER_UNIT["min_p"] * before[0]).sum())
                n, mass = min((n, mass), (n_likely, cumulative[n_likely - 1].item()))
        return n, mass


def _random_number(seed, index):
    """Return the number, from 0 to 1, at one index of the sequence of a seed: mulberry32, as in the lab's script."""
    a = (seed * 0x9E3779B1 + (index + 1) * 0x6D2B79F5) & 0xFFFFFFFF
    a = ((a ^ (a >> 15)) * (a | 1)) & 0xFFFFFFFF
    a ^= (a + (((a ^ (a >> 7)) * (a | 61)) & 0xFFFFFFFF)) & 0xFFFFFFFF
    return (a ^ (a >> 14)) / 2**32
