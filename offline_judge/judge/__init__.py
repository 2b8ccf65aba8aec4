"""A backend as methods see it: rendered prompts, checked answers, bounded retries, a cache."""
