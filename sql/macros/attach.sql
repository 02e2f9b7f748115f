-- The file beside an output file that keeps the model; made if it does not exist. The storage version is one
-- that every supported version of DuckDB reads. Each table takes a block at least, so blocks are small; still
-- smaller ones would not hold the compressed columns of a row group.
-- in:  path (literal), name (identifier)
-- out: the file is attached
ATTACH {{ path }} AS {{ name }} (STORAGE_VERSION 'v1.2.0', BLOCK_SIZE 65536)
