"""Chapter 3."""
