"""Method `reference`: a judge that is shown the accepted answers."""
