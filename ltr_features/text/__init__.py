"""From text to counts: analysis, collections, the term index, candidates."""
