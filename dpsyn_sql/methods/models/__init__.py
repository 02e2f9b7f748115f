"""Fitted models, one file a kind: what they answer, their network, tables and sampler."""
