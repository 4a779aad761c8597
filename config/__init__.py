"""Composition root: settings, URLs, Celery, the error form. The only package that sees every app."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
