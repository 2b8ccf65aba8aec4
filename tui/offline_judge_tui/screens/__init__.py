"""One file a screen; the registry names them, and each is imported when it is first opened."""
