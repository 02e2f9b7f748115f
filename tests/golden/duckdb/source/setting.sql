SELECT
    current_setting('TimeZone') AS value
