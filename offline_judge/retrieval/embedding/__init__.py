"""Embedders that run in this process; those of the engine are in `backends`."""
