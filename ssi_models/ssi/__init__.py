"""Supervised Semantic Indexing (Bai et al., "Learning to rank with (a lot of) word features")."""
