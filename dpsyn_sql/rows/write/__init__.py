"""8 From codes to values, published in one transaction."""
