"""PRIVATE: from the source's values to codes, as SQL. Only the counter and the release may import this."""
