"""From codes to values, as SQL. It sees no row of the source."""
