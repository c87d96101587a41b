"""Run directories, and what is decided before one begins."""
