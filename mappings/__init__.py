"""The mapping files that come with the service; README.md says how to write one."""
