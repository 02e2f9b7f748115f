"""Domains too large to list: public trees over the values of one or more columns.

Points are refined by halving their box (quadtrees; dyadic numbers and dates are points of one column), text
by its next characters, taxonomies by their own children. See ``base.Hierarchy``.
"""
