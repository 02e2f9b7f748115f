"""Apache Spark: its tasks count with DuckDB beside every part of the rows. Nothing here imports pyspark."""
