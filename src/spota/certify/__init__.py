"""Algorithm 1: from candidate and references to a certificate."""
