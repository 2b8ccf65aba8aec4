"""What people said: labels joined to samples by id."""
