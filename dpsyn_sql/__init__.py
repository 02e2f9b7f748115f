"""dpsyn_sql."""
