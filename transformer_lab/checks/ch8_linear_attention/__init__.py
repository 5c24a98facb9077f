"""Chapter 8: positive features, linear attention in its three forms, and padding in a sum."""
