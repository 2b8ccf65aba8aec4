"""Method `lexical`: the response compared with the accepted answers by words."""
