"""Pages in the browser: the explorer, for people who search."""
