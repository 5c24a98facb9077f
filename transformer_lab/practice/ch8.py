"""Chapter 8."""
