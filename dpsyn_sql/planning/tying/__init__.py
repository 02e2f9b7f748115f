"""How tables are tied together, from what the catalog and the owner say of them."""
