"""One sample's trace as a tree to walk and evidence to read; no Textual in here."""
