"""Strict prompt templates, fencing of untrusted text, and the parsing of answers."""
