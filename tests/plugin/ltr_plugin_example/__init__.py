"""A column family, a ranker and a source, as another package brings them."""
