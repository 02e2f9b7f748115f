"""The plan: which marginals at what share of the budget, and questions and answers as values."""
