"""One file per command; nothing below this package prints."""
