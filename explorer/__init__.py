"""Pages for people at the hospital, who search stays with the token of their own login."""
