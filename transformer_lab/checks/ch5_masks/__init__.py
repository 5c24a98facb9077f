"""Chapter 5: masks for the causal order and for padding, attention under them, and where the decoder's go."""
