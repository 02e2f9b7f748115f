"""What users call: ``release``, ``plan``, ``load``, and the ways in from SQL and dbt.

Joins both sides of the door.
"""
