"""How dates and numbers are written, where Django's own choice reads badly in this product."""
