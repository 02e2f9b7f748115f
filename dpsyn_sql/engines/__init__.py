"""The only package that imports a database driver."""
