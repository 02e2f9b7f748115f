"""From codes to values, as SQL: post-processing, which sees no row of the source."""
