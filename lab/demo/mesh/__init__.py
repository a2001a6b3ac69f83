"""The scenario of Live Mesh (Centrifuge 4.1, figure 11), with real processes."""
