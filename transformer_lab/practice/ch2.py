"""Chapter 2."""
