"""The version, apart from everything that would need it."""

__version__ = "0.1.0"
