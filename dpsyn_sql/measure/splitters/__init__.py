"""Which nodes of a public tree are split: one algorithm a file. PRIVATE counts go in, noisy arrays come out.

Every file has two halves: tests that see exact counts and add noise, and a public reading of what they
stored.
"""
