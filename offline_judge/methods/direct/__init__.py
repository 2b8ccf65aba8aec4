"""Method `direct`: the judge alone, without search. The control SAGE is measured against."""
