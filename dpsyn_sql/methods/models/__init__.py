"""Fitted models, of tables and of networks: what they answer, their network, tables and sampler."""
