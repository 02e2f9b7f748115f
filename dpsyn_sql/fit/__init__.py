"""The arithmetic from noisy marginals to consistent tables and models; numpy and scipy only."""
