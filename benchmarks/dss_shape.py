"""A table of the shape of the copula paper's largest: 5,240,260 rows, 27 attributes, 674 values.

    python benchmarks/dss_shape.py [--rows 5240260] [--method adaptive] [--memory 4GB]

The paper needed 2 h 30 min on 10 cores for its table, which is not public.
"""

from large_tables import Shape, run

PAPER_SECONDS = 2.5 * 3600
SIZES = (2, 2, 2, 3, 3, 4, 5, 6, 8, 9, 10, 12, 13, 15, 16, 20, 22, 25, 28, 30, 35, 40, 48, 55, 70, 81, 110)

if __name__ == "__main__":
    run(Shape("DSS shape", 5_240_260, SIZES), __doc__ or "", [("the copula paper, 10 cores", PAPER_SECONDS)])
