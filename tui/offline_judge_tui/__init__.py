"""The terminal UI: starts, watches and reads runs through the same API as the command line."""
