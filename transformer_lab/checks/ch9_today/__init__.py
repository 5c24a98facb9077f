"""The block of today: rotary positions, shared keys, a gated feed-forward layer, a block."""
