"""Frozen types and pure functions that every other room speaks in."""
