"""Comparisons over many runs."""
