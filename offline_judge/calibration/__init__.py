"""Thresholds and maps from probabilities to labels, fitted on what people said."""
