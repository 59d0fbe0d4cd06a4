"""Training on preferences: the walk of a pair from a preference to a step."""
