"""What holds for every test."""

from hypothesis import settings

# A busy machine is slow, not wrong: no example fails by the clock.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
