"""Inference engines, one file each, and the process and wire code they share."""
