"""How numbers are written, where Django's own way is not what people read with ease."""
