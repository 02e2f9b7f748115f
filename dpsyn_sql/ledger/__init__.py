"""Who spent what: accounts with limits, debits, and the stored noisy answers."""
