"""A method of judging, as a package of somebody else might bring it."""
