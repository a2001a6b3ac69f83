"""The lab: what shows that tenure keeps its promises. None of it is in the wheel.

- `mutants`: the product with one rule left out, as patches of text, and how they are run;
- `hunt`: whether every one of them is noticed;
- `simulate`: how one of them is noticed.
"""
