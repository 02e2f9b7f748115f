"""Methods of papers, one file each."""
