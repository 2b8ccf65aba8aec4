"""Data files in, samples out."""
