"""What a reader sees: tables, figures, the report."""
