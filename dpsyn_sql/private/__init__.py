"""PRIVATE: the only room that sees exact counts.

``encode`` writes SQL over the rows, ``count`` runs it, ``measure`` is the door: it charges the ledger, adds
noise and gives answers.
"""
