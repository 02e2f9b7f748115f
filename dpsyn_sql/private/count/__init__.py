"""4 PRIVATE: exact counts by generated SQL. Only dpsyn_sql.private.measure may import this."""
