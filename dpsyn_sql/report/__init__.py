"""10 Certificate, marginals with error bars, and the explained plan."""
