"""Chapter 4."""
