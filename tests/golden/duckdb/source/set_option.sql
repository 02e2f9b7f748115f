SET "threads" = 2
