"""SQL as text: quoting, templates, and what engines spell differently."""
