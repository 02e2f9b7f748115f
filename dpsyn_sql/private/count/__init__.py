"""PRIVATE: exact counts by generated SQL. Only ``private.measure`` and ``front`` may import this."""
