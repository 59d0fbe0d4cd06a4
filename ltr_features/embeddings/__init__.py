"""Word and document embeddings: vector files, training on a collection, inference, cosines."""
