"""Chapter 7: how many numbers a model learns, how much work its attention takes, and what its cache takes."""
