"""A world with two masters: managers on two journals, and owners that know the one, the other, or
both (P25).
"""
