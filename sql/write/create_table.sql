-- Publish as a table. Without replace an existing relation of the name is an error of the database.
-- in:  target (qualified name), replace (0 or 1), query (the decoded rows)
-- out: the table
{% if replace %}
CREATE OR REPLACE TABLE {{ target }} AS
{% else %}
CREATE TABLE {{ target }} AS
{% endif %}
{{ query }}
