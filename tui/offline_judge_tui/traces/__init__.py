"""One sample's trace as a tree to walk and evidence to read, apart from how that is drawn."""
