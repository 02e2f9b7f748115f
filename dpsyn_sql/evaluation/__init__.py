"""PRIVATE: compare a synthetic table with the real one, for the owner of the data alone.

No release imports this package, and nothing of it may be published: its figures come from exact counts of
real rows.
"""
