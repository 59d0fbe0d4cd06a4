"""S2Net: a projection trained on the ranking of pairs (Yih et al., CoNLL 2011)."""
