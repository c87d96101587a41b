"""Studies on problems whose truth is known."""
