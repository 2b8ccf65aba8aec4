"""Engines in environments of their own: how each is made, making it, taking it away."""
