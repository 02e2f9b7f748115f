"""1 What is protected: relation, privacy unit, and which queries may be a source."""
