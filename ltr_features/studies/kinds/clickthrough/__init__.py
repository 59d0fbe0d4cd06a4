"""Experiments on query-title pairs: latent semantic and translation models (Gao et al. 2011)."""
