-- What a release has to tell the model that asked for it: a variable of the model's own connection.
-- in:  told (literal)
-- out: the variable is set
SET VARIABLE dpsyn_told = {{ told }}
