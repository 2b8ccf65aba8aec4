"""Figures over judged samples; pure functions."""
