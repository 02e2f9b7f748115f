"""6 From noisy marginals to a model; numpy and scipy only."""
