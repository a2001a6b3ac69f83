"""Documents in named sections, with versions: the PRS paper's Sectioned-Document (section 3)."""
