"""Kestrel as a source of the Encounter Information Service."""

from kestrel.adapter import KestrelAdapter

__all__ = ["KestrelAdapter"]
