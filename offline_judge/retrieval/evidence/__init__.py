"""The record of evidence (SQLite) and its vectors (Chroma)."""
