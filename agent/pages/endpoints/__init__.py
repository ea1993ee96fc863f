"""How model endpoints fare, and trying them."""
