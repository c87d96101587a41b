"""From recordings of one machine to a table that covers it, and whether a table covers it at all."""
