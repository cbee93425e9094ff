"""What integrators run: the tools for mapping files."""
