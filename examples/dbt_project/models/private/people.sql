-- A private table. Here it is a stand-in, made from a synthetic file; yours comes from a source() or a seed.
select
    age,
    sex,
    education,
    hours_per_week,
    income
from read_parquet('../adult.parquet')
