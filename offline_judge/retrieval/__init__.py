"""Finding evidence: corpora on this machine and the search over them."""
