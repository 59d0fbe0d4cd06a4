"""Per-query numbers in, numbers out; nothing here knows a kind of study or a page."""
