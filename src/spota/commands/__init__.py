"""One file a command; nothing below this package prints."""
