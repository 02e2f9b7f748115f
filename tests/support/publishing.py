"""One staged table as the output: what most tests of writing need."""

from dpsyn_sql.rows.write.publish import WrittenTable
from dpsyn_sql.rows.write.publish import publish as publish_tables


def publish(engine, target, shape, staged, seed, units=None, kept=None, persons=0):
    table = WrittenTable("rows", shape, staged, seed, kept, units=units, persons=persons)
    publish_tables(engine, target, [table])
