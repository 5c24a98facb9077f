"""Chapter 7."""
