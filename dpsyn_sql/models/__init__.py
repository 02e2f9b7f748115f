"""Fitted models, one file each: what they answer, their network, tables and sampler."""
