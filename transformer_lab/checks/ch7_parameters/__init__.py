"""Chapter 7: how many numbers a model learns, how much work its attention takes, and how large its cache is."""
