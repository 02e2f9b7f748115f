"""From a model to synthetic rows as codes."""
