"""Weights on this machine: model cards, verified download, GGUF headers and the local store."""
