"""Sessions of DuckDB and Spark: the only room that imports a database driver."""
