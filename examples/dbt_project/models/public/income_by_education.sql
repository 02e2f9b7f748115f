select
    education,
    count(*) as people,
    avg(case when income = '>50K' then 1.0 else 0.0 end) as over_50k
from {{ ref('people_synthetic') }}
group by education
