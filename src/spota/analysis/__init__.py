"""Policies on the same domains: sweeps, comparisons, and what costs the return."""
