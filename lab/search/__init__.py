"""The search through every story of a small world, for stories that are short instead of deep.

It knows no lease and no other protocol, as the simulator's kernel beside which it stands.

- `memo`: every state of a machine as a number;
- `exhaustive`: the search through every story, with choices for dice;
- `small`: a world of few processes, for that search.
"""
