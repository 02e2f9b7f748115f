"""Fitted models: what they answer, their network, tables and sampler. One file for tables, one for networks."""
