"""9 Who spent what: accounts and entries."""
