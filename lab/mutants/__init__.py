"""Mutants: the product with one rule left out, which tests and simulations must notice.

A check that has never caught anything may be checking nothing. Each mutant is a patch of text: it
knows the lines that a rule is written in, and no name of the product has to stand still for it.

- `*.toml`: the mutants of each tier (README.md says how to add one);
- `catalogue`: what they are, and where they are found;
- `copies`: the product with a mutant's patches, beside the product;
- `running`: a process of its own that runs such a copy.
"""
