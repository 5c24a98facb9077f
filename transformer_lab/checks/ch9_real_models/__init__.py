"""The epilogue: rotary positions, shared keys, a gated feed-forward layer, a block, a cache, a mean, and an answer."""
