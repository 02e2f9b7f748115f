"""3 Which marginals at what budget, and how to explain it."""
