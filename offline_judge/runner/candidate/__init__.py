"""The stage before judging in which a local model writes the responses that are missing."""
