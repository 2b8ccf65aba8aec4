"""The forms in which public sets of questions are published, one file a form."""
