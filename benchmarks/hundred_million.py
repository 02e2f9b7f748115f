"""A hundred million rows of 15 attributes, three of them words, from Parquet to Parquet.

    python benchmarks/hundred_million.py [--rows 100000000] [--method adaptive] [--memory 4GB]

The encoded table and the sampled rows spill to a private folder where they do not fit under the limit.
"""

from large_tables import Shape, run

SIZES = (8, 16, 40, 2, 2, 5, 7, 10, 12, 16, 24, 31, 50, 74, 100)

if __name__ == "__main__":
    run(Shape("A hundred million rows", 100_000_000, SIZES, texts=3), __doc__ or "")
