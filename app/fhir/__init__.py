"""FHIR STU3 as this service writes it."""

PATH = "/fhir/v3"
"""The version of the interface is in the path (spec 9)."""
