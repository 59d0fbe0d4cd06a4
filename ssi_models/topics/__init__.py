"""Topic models of query-title pairs, and the language model that they are mixed with."""
