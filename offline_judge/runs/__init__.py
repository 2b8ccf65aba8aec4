"""The run directory: trace, blobs, lock, index, and the socket a running run is reached by."""
