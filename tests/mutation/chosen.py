"""Which planted faults a run plants: all of them, or those that a change can touch and some drawn at random."""

import random

VARIABLE = "DPSYN_FAULTS"
"""A seed and the files that changed, with spaces between; without it a run plants every fault."""

DRAWN = 20

MOST = 240
"""Of changed files; a change of nearly all files would plant nearly all faults, for an hour and more."""


def chosen(faults, words):
    """The faults of changed files and those that a changed test kills, of more than ``MOST`` so many drawn at
    random, and ``DRAWN`` of the others, in the order of ``faults``.

    Every process of pytest-xdist chooses the same.
    """
    if not words.strip():
        return list(faults)
    seed, *files = words.split()
    changed = set(files)

    def touched(fault):
        files = (fault.killed_by.partition("::")[0], *(file for file, _, _ in fault.edits))
        return not changed.isdisjoint(files)

    def drawn(names, most):
        return set(random.Random(seed).sample(names, min(most, len(names))))

    wanted = drawn([fault.name for fault in faults if touched(fault)], MOST)
    wanted |= drawn([fault.name for fault in faults if not touched(fault)], DRAWN)
    return [fault for fault in faults if fault.name in wanted]
