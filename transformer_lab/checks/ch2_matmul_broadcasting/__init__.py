"""Chapter 2: which shapes fit, what comes out, and the products of rows that attention is made of."""
