"""Mechanisms that the papers compare with, a page each: for benchmarks on public data only.

Their noise is numpy's, in floating point and from a seed, and they count rows in memory. So they make no
privacy claim for real data. What they would promise with exact noise is stated, and their scales are exact.
A row is added or removed: then one cell of each marginal changes by 1.
"""
