"""Runs and policies as people look at them."""
