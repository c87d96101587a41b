"""Answers to "solve the approximated stochastic program" (eq_SPn)."""
