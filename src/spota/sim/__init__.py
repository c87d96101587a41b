"""Domains, the contract of a platform, and rollouts."""
