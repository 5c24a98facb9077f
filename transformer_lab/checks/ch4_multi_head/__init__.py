"""Chapter 4: splitting into heads and merging them, multi-head attention, and PyTorch's packed weights."""
