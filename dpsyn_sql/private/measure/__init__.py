"""The door: the curator charges, counts, adds noise, stores and answers. Noisy answers alone leave it."""
