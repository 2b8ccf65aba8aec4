"""Method `sage`: search-augmented evaluation, N rounds of query, search, summary and reflection."""
