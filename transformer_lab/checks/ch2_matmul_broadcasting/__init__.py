"""Chapter 2: which shapes fit, which shape the result has, and the products of rows on which attention is built."""
