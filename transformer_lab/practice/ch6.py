"""Chapter 6."""
