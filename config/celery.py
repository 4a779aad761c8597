"""Celery application: `celery -A config worker`, `celery -A config beat`."""

import logging.config
import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging
from django.conf import settings
from django_structlog.celery.steps import DjangoStructLogInitStep
from kombu.transport import redis as redis_transport

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# Django's checks import every URL, hence the admin and the API: 10 MB and more in a worker that serves none of them.
os.environ.setdefault("CELERY_SKIP_CHECKS", "true")

app = Celery("config")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["worker"].add(DjangoStructLogInitStep)

# A worker that loses Redis while a message is unacknowledged would hand it back over the connection that it has just
# lost, and end itself with "Unrecoverable error" (kombu 5.7). It need not hand back: the row says what is owed, and
# Redis redelivers after the visibility time-out.
redis_transport.Channel.do_restore = False


@setup_logging.connect
def _log_as_django_does(**_: Any) -> None:
    """Keep Celery from installing its own handlers: `settings.LOGGING` serves every process."""
    logging.config.dictConfig(settings.LOGGING)
