"""Chapter 3: softmax, attention as a lookup, one head, and positions."""
