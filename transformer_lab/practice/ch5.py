"""Chapter 5: masks."""

from .answers import Mask
from .topic import Topic

decoder = Topic(
    title="A decoder's own mask",
    rule="decoder_masks",
    sizes={"batch": (1, 1), "t_len": (3, 7), "s_len": (4, 7)},
    question=lambda t_lengths, s_lengths, t_len, s_len: (
        f"A decoder has {t_len} places for its own tokens, and the first {int(t_lengths)} are real. "
        "Paint the mask of its look at itself."
    ),
    answer=Mask(),
    asks=lambda masks, *arguments: masks[0][0, 0],
)
