"""What users call: ``release``, ``plan``, ``load``, and the ways in from SQL and dbt.

It joins both sides of the door.
"""
