"""Judge language-model output on one workstation, with open-weight judges and no paid service."""
