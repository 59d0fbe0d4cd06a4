"""Semantic matching models trained on words: sparse term matrices in, scores out."""
