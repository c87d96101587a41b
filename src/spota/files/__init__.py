"""Files that are complete or absent, and arrays in them that say what they are."""
