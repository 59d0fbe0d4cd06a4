"""Translation models of query-title pairs."""
