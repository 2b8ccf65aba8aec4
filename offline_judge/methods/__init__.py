"""Methods of judging, one package a family."""
