"""The public shape of a table: attributes with their codes, and columns that have a role."""
