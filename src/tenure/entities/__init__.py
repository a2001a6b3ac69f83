"""A class for each key: its instances live at the owners of their keys, and move with them."""
