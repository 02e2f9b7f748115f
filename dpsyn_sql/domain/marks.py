"""Words of ours that stand among the values of a column."""

OTHER = "__other__"
"""The value of rows that no label covers."""

ANY_REST = "*"
"""The end of a label that stands for all text that begins like it."""
