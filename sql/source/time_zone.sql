-- The time zone in which this session reads moments with a time zone as days and times.
-- in:  nothing
-- out: time_zone
SELECT current_setting('TimeZone') AS time_zone
