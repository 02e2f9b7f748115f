"""PRIVATE: the only room that sees exact counts.

``encode`` writes SQL over the rows, ``count`` runs it, ``measure`` is the door: it charges, adds noise and
hands out answers.
"""
