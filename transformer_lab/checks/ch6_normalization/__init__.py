"""Chapter 6: layer norm, RMS norm, the feed-forward layer, residual connections with a norm, and a whole stack."""
