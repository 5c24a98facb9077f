"""Chapter 5: masks for the causal order and for padding, attention under a mask, and the masks of a decoder."""
