-- A variable that its parents decide takes its place in the words.
-- in:  work (table), parent (expression), distribution (relation: parent, value, low, high),
--      words (the new word AS its name)
-- out: the columns row, w0, w1, ...
CREATE OR REPLACE TEMP TABLE {{ work }} AS
SELECT
{% for word in words %}
    {{ word }},
{% endfor %}
    w."row"
FROM {{ work }} AS w
INNER JOIN {{ distribution }} AS d
    ON d.parent = {{ parent }}
