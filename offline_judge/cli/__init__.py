"""The command line: one file a command group, over the API."""
