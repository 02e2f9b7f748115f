"""What is protected: the relation, the privacy unit, and which queries may be a source."""
