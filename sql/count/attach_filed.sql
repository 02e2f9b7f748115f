-- Attach a new file of ours, in our private folder.
-- in:  path (text literal), name (identifier), key (text literal of its encryption; none: it is not encrypted)
-- out: nothing
ATTACH {{ path }} AS {{ name }}{% if key %} (ENCRYPTION_KEY {{ key }}){% endif %}

