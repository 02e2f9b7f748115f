"""4 PRIVATE: exact counts by generated SQL. Only dpsyn_sql.measure may import this."""
