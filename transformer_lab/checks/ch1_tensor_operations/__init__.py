"""Chapter 1: places in storage, strides, a transpose without a copy, and merging two axes."""
