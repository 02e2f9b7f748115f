SET search_path = 'a."b,c"'
