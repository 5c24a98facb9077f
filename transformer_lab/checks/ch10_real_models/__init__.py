"""Real models: a step with a cache, a mean of real tokens, and a loop that writes."""
