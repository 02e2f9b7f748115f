"""What a reader gets beside the rows: certificate, losses, marginals with error bars, the public page."""
