-- The mean squared distance of points to the nearest centre, of several lists of centres in one scan.
-- in:  relation (what stands after FROM), coordinates (expressions, DOUBLE), names (v<i> of each coordinate),
--      nearest (of each list the least of the squared distances from v0, v1, ...)
-- out: points (BIGINT; those with every coordinate) and m<i> (DOUBLE) of each list
SELECT
    count(*) AS points
{% for distance in nearest %}
    , avg({{ distance }}) AS m{{ loop.index0 }}
{% endfor %}
FROM (
    SELECT
{% for coordinate in coordinates %}
        {{ coordinate }} AS v{{ loop.index0 }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM {{ relation }}
) AS points
WHERE TRUE
{% for name in names %}
    AND {{ name }} IS NOT NULL
{% endfor %}
