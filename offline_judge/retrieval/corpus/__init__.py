"""Corpora: documents, passages, and the index built of them."""
