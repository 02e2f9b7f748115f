USE "x"
