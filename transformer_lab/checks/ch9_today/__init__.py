"""Chapter 9: rotary positions, shared keys, the gated feed-forward layer, a block, experts, and latent caches."""
