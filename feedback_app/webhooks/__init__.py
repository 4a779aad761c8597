"""Telling other programs something over HTTP: where to, how it is signed, how it is sent. Knows no models."""
