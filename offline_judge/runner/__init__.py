"""The run loop: planning, lanes, limits, stopping, and what a watcher is told meanwhile."""
