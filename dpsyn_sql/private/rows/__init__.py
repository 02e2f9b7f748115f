"""PRIVATE: SQL from the source's values to codes."""
