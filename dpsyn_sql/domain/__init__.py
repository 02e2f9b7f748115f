"""2 The public shape: attributes, their codes, and the SQL that encodes and decodes them."""
