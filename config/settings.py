"""Settings, read from the environment. Top to bottom: ground, apps, database, broker, web, API, admin, domain, logs.

Every variable may also stand in `DATA_DIR/env` (written by `bin/run`), which never overrides the environment.
`docs/settings.md` lists them all.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import django_stubs_ext
import environ
import structlog
from csp.constants import NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE
from django.core.exceptions import ImproperlyConfigured
from django.templatetags.static import static
from django.utils.translation import gettext_lazy as _

django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent
env: Any = environ.FileAwareEnv()  # where NAME_FILE=/run/secrets/name is set, that file is read instead of NAME

DATA_DIR = Path(env.str("DATA_DIR", default=str(BASE_DIR / "data"))).resolve()
environ.Env.read_env(DATA_DIR / "env", overwrite=False)

# -- ground ----------------------------------------------------------------------------------------------------------

DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = env.str("SECRET_KEY", default="")
if not SECRET_KEY:
    raise ImproperlyConfigured(
        "SECRET_KEY is not set. Start with bin/run, which makes one, or set SECRET_KEY (or SECRET_KEY_FILE) to the "
        'output of: python -c "import secrets; print(secrets.token_urlsafe(50))"'
    )
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
APPEND_SLASH = True

# -- apps ------------------------------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    # Without admin autodiscovery (config.urls does it): workers never load the admin, which saves them 20 MB each.
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "corsheaders",
    "csp",
    "axes",
    "django_structlog",
    "sessions_app",
    "cases_app",
    "feedback_app",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "config.middleware.PagePolicy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "config.middleware.RequestLog",
    "axes.middleware.AxesMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# -- database --------------------------------------------------------------------------------------------------------


def _database() -> dict[str, Any]:
    """The database of DATABASE_URL, with what both kinds need to keep our invariants."""
    DATA_DIR.mkdir(parents=True, exist_ok=True)
    if env.str("DATABASE_URL", default=""):
        database: dict[str, Any] = env.db_url("DATABASE_URL")
    else:
        database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(DATA_DIR / "db.sqlite3")}
    options: dict[str, Any] = database.setdefault("OPTIONS", {})
    database["CONN_MAX_AGE"] = env.int("CONN_MAX_AGE", default=60)
    database["CONN_HEALTH_CHECKS"] = True
    if database["ENGINE"].endswith("mysql"):
        database["ENGINE"] = "config.mysql"
        options.setdefault("charset", "utf8mb4")
        options.setdefault("connect_timeout", 5)
        if seconds := env.int("DATABASE_READ_TIMEOUT", default=0):
            options["read_timeout"] = options["write_timeout"] = seconds
        # At REPEATABLE READ the loser of a race cannot see the winner's row (Django ticket 27683).
        options["isolation_level"] = "read committed"
        options["init_command"] = "SET sql_mode='TRADITIONAL', innodb_strict_mode=1, innodb_lock_wait_timeout=10"
        database.setdefault("TEST", {}).update({"CHARSET": "utf8mb4", "COLLATION": "utf8mb4_unicode_ci"})
    else:
        # IMMEDIATE takes the write lock at BEGIN: no "database is locked" half-way through a transaction.
        options["transaction_mode"] = "IMMEDIATE"
        options["timeout"] = 20
        options["init_command"] = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;"
    return database


DATABASES = {"default": _database()}

# -- broker and cache ------------------------------------------------------------------------------------------------


def _broker_url() -> str:
    """CELERY_BROKER_URL; else the socket of the broker that `bin/run` keeps; else Celery's file transport."""
    if url := env.str("CELERY_BROKER_URL", default=""):
        return str(url).strip()  # a file of secrets ends with a line feed
    folder = DATA_DIR / "broker"
    # The configuration, not the socket, says which it is: the socket is away while that broker starts again.
    return (
        f"redis+socket://{quote(str(folder / 'broker.sock'))}" if (folder / "valkey.conf").exists() else "filesystem://"
    )


CELERY_BROKER_URL = _broker_url()
_REDIS = CELERY_BROKER_URL.startswith(("redis://", "rediss://", "redis+socket://"))

if _REDIS:
    # A publish must never hold a web request: the row is the queue, the message only a hint (FAULTS 1.3).
    CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {
        "socket_connect_timeout": 0.5,
        "socket_timeout": 1,
        "visibility_timeout": 300,  # above CELERY_TASK_TIME_LIMIT, so that no task runs twice at once
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
        "retry_on_timeout": False,
        "max_retries": 0,
    }
else:
    _folder = DATA_DIR / "broker" / "messages"
    _control_folder = DATA_DIR / "broker" / "control"
    for _each in (_folder, _control_folder):
        _each.mkdir(parents=True, exist_ok=True)
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(_folder),
        "data_folder_out": str(_folder),
        "control_folder": str(_control_folder),
        "store_processed": False,
        "polling_interval": 0.5,
    }

CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = False  # the sweep finds what a dead process left; redelivery would loop
CELERY_TASK_SOFT_TIME_LIMIT = 20
CELERY_TASK_TIME_LIMIT = 25
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_DIR / "beat-schedule")
CELERY_BEAT_SCHEDULE = {
    # Truth behind the hints: whatever a lost message or a dead worker left unscored. Also the worker's sign of life.
    "sweep-evaluations": {
        "task": "sessions_app.tasks.sweep_evaluations",
        "schedule": 5.0,
        "options": {"expires": 4.5},
    },
    # Looks whether a report is owed; a Monday on which nothing ran is caught up by the first look after it.
    "weekly-report": {"task": "feedback_app.tasks.make_weekly_report", "schedule": 300.0, "options": {"expires": 290}},
    "find-re-asks": {"task": "feedback_app.tasks.find_re_asks", "schedule": 5.0, "options": {"expires": 4.5}},
    # Of what is due now, as much as fits into some seconds; the rest waits for the next turn.
    "apply-retention": {"task": "feedback_app.tasks.apply_retention", "schedule": 60.0, "options": {"expires": 55.0}},
    # Alerts: what there is to tell is looked for, and sent; a webhook that failed is tried again when its time comes.
    "watch-alerts": {"task": "feedback_app.tasks.watch_alerts", "schedule": 10.0, "options": {"expires": 9.5}},
    "watch-alerts-thoroughly": {
        "task": "feedback_app.tasks.watch_alerts_thoroughly",
        "schedule": 300.0,
        "options": {"expires": 290.0},
    },
    "send-alerts": {"task": "feedback_app.tasks.send_alerts", "schedule": 5.0, "options": {"expires": 4.5}},
    "rank-bad-cases": {"task": "feedback_app.tasks.rank_bad_cases", "schedule": 60.0, "options": {"expires": 55}},
    "run-bulk-jobs": {"task": "cases_app.tasks.run_bulk_jobs", "schedule": 5.0, "options": {"expires": 4.5}},
    "forget-bulk-jobs": {
        "task": "cases_app.tasks.forget_bulk_jobs",
        "schedule": 3600.0,
        "options": {"expires": 3500.0},
    },
    "write-terms": {"task": "sessions_app.tasks.write_terms", "schedule": 5.0, "options": {"expires": 4.5}},
    "prune-traces": {"task": "sessions_app.tasks.prune_traces", "schedule": 3600.0, "options": {"expires": 3500.0}},
}

# Where the limits on feedback are counted; with no Redis, in DATA_DIR/limits.sqlite3.
CACHE_URL = env.str("CACHE_URL", default=CELERY_BROKER_URL if _REDIS else "").strip()
CACHES: dict[str, Any] = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
if CACHE_URL:
    CACHES["default"] = {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": CACHE_URL.replace("redis+socket://", "unix://"),
        "KEY_PREFIX": "cache",
        "OPTIONS": {"socket_connect_timeout": 0.2, "socket_timeout": 0.2},
    }

# -- web -------------------------------------------------------------------------------------------------------------

# Where TLS ends: set HTTPS=true behind a proxy that sends X-Forwarded-Proto. Off for a first try on localhost.
HTTPS = env.bool("HTTPS", default=False)
if HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    SECURE_HSTS_SECONDS = env.int("HSTS_SECONDS", default=31_536_000)
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True
    SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_AGE = 60 * 60 * 12
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
CORS_ALLOWED_ORIGINS = env.list("CORS_ALLOWED_ORIGINS", default=[])
CORS_URLS_REGEX = r"^/api/feedback(/events)?$"
CORS_ALLOW_METHODS = ("POST",)
CORS_ALLOW_HEADERS = ("authorization", "content-type", "accept-language", "x-api-key", "x-feedback-token")
CORS_EXPOSE_HEADERS = ("Retry-After",)  # a page of another site may read no other header of ours
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        # unfold's Alpine.js evaluates expressions and carries inline handlers; no other host is ever allowed.
        "script-src": [SELF, UNSAFE_INLINE, UNSAFE_EVAL],
        "style-src": [SELF, UNSAFE_INLINE],
        "img-src": [SELF, "data:"],
        "font-src": [SELF, "data:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

# The page /demo shows the widget on the sample sessions; it is public.
DEMO = env.bool("DEMO", default=False)

STATIC_URL = "/static/"
STATIC_ROOT = Path(env.str("STATIC_ROOT", default=str(DATA_DIR / "static")))
STATIC_ROOT.mkdir(parents=True, exist_ok=True)
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True  # static files are served without collectstatic too
DATA_UPLOAD_MAX_NUMBER_FIELDS = 20_000  # a selection of thousands of rows in the admin is one form
DATA_UPLOAD_MAX_MEMORY_SIZE = 16 * 1024 * 1024  # a case holds an answer of up to 1,048,576 characters twice, quoted

LANGUAGE_CODE = env.str("LANGUAGE_CODE", default="zh-hans")
LANGUAGES = [("zh-hans", "简体中文"), ("ru", "Русский"), ("en", "English")]
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600  # who has chosen a language keeps it when the browser closes
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_SECURE = HTTPS
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = "config.formats"
USE_I18N = True
TIME_ZONE = env.str("TIME_ZONE", default="UTC")
USE_TZ = True

# -- e-mail ----------------------------------------------------------------------------------------------------------

EMAIL_URL = env.str("EMAIL_URL", default="").strip()  # none: no mail is sent
for _name, _value in environ.Env.email_url_config(EMAIL_URL or "dummymail://").items():
    globals()[_name] = _value
EMAIL_TIMEOUT = 8  # seconds; below the time limit of a task
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", default="diagnosis@localhost")
# Where people reach the product: for links in mails, which know no request.
PUBLIC_URL = env.str("PUBLIC_URL", default="")

# -- logins ----------------------------------------------------------------------------------------------------------

AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_ENABLE_ADMIN = False  # `manage.py axes_reset_username NAME` lets somebody in again
# Addresses are taken from X-Forwarded-For only when this many trusted proxies stand before the product.
TRUSTED_PROXIES = env.int("TRUSTED_PROXIES", default=0)
AXES_IPWARE_PROXY_COUNT = TRUSTED_PROXIES
AXES_IPWARE_META_PRECEDENCE_ORDER = ["HTTP_X_FORWARDED_FOR", "REMOTE_ADDR"] if TRUSTED_PROXIES else ["REMOTE_ADDR"]

# -- API -------------------------------------------------------------------------------------------------------------

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["sessions_app.access.authentication.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["sessions_app.access.permissions.DenyAll"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["sessions_app.wire.parsers.StrictJSONParser"],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_PAGINATION_CLASS": "config.api.NewestFirstPagination",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "config.api.handle_exception",
    "UNAUTHENTICATED_USER": None,
    "PAGE_SIZE": 50,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Diagnosis records, feedback and cases",
    "DESCRIPTION": "Record what agents did, take feedback on their answers, look up published cases.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SCHEMA_PATH_PREFIX": r"/(api|v1)/",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "config.api.document_refusals",
    ],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "ENUM_NAME_OVERRIDES": {
        "VerdictEnum": "sessions_app.models.Verdict.choices",
        "SessionStatusEnum": "sessions_app.models.Status.choices",
        "CaseStatusEnum": "cases_app.models.CaseStatus.choices",
    },
}
# Bytes after inflating. A single item of a batch is bounded by the limits of its fields (sessions_app.wire.fields).
MAX_BODY_BYTES = env.int("MAX_BODY_BYTES", default=32 * 1024 * 1024)
FEEDBACK_AUTH = env.str("FEEDBACK_AUTH", default="anonymous")  # or "token"
if FEEDBACK_AUTH not in {"anonymous", "token"}:
    raise ImproperlyConfigured('FEEDBACK_AUTH must be "anonymous" or "token".')


def _rate(text: str) -> tuple[int, int]:
    """`300/min` as a count and seconds."""
    found = re.fullmatch(r"\s*([1-9]\d{0,8})\s*/\s*(second|sec|s|minute|min|m|hour|h|day|d)\s*", text)
    if not found:
        raise ImproperlyConfigured(f"{text!r} is no rate; write 300/min, or such per second, hour or day.")
    return int(found[1]), {"s": 1, "m": 60, "h": 3600, "d": 86_400}[found[2][0]]


# Events, whether they come alone or in lists.
FEEDBACK_RATES = {
    "address": _rate(env.str("FEEDBACK_RATE_PER_ADDRESS", default="300/min")),
    "session": _rate(env.str("FEEDBACK_RATE_PER_SESSION", default="120/min")),
    "key": _rate(env.str("FEEDBACK_RATE_PER_KEY", default="6000/min")),
}
FEEDBACK_TOKEN_MAX_AGE_SECONDS = env.int("FEEDBACK_TOKEN_MAX_AGE_SECONDS", default=90 * 24 * 3600)

# -- domain ----------------------------------------------------------------------------------------------------------

RETRIEVAL_TOOLS = env.list("RETRIEVAL_TOOLS", default=["lookup_knowledge"])
# A trace whose outermost span never came is scored when nothing has come for this long.
OTLP_QUIET_SECONDS = env.int("OTLP_QUIET_SECONDS", default=300)
# How long the spans of a quiet trace are kept for late ones.
OTLP_LEDGER_DAYS = env.int("OTLP_LEDGER_DAYS", default=7)
EVALUATION_MAX_ATTEMPTS = env.int("EVALUATION_MAX_ATTEMPTS", default=5)
# The key of pseudonyms and of what is remembered of the erased. Its own, so that SECRET_KEY can change without them.
PRIVACY_KEY = env.str("PRIVACY_KEY", default="") or SECRET_KEY
# Days after which texts are anonymised, and after which sessions are removed; 0: never.
RETENTION_ANONYMISE_DAYS = env.int("RETENTION_ANONYMISE_DAYS", default=0)
RETENTION_REMOVE_DAYS = env.int("RETENTION_REMOVE_DAYS", default=0)
if min(RETENTION_ANONYMISE_DAYS, RETENTION_REMOVE_DAYS) < 0:
    raise ImproperlyConfigured("RETENTION_ANONYMISE_DAYS and RETENTION_REMOVE_DAYS count days from 0.")
# Of the triages, this share is judged by a second reviewer who does not know the first verdict.
SECOND_REVIEW_SHARE = env.float("SECOND_REVIEW_SHARE", default=0.0)
if not 0 <= SECOND_REVIEW_SHARE <= 1:
    raise ImproperlyConfigured("SECOND_REVIEW_SHARE must be from 0 to 1.")
TRIAGE_DUE_HOURS = env.int("TRIAGE_DUE_HOURS", default=72)
# A claim is free again after this long without a word from its reviewer; 0: never.
TRIAGE_CLAIM_HOURS = env.int("TRIAGE_CLAIM_HOURS", default=8)
# Hosts, addresses and networks that webhooks of alerts may reach although they are private.
ALERT_ALLOWED_PRIVATE_HOSTS = env.list("ALERT_ALLOWED_PRIVATE_HOSTS", default=[])
# A question is asked again when it comes within this time, among this many before it, and is at least so much alike.
RE_ASK_WINDOW_SECONDS = env.int("RE_ASK_WINDOW_SECONDS", default=120)
RE_ASK_DEPTH = env.int("RE_ASK_DEPTH", default=5)
RE_ASK_THRESHOLD = env.float("RE_ASK_THRESHOLD", default=0.7)
SIMILARITY = env.str("SIMILARITY", default="feedback_app.similarity.words_and_characters")

# -- logs ------------------------------------------------------------------------------------------------------------

LOG_FORMAT = env.str("LOG_FORMAT", default="json")  # or "console"
LOG_LEVEL = env.str("LOG_LEVEL", default="INFO").upper()
_shared_processors: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]
structlog.configure(
    processors=[
        *_shared_processors,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    wrapper_class=structlog.make_filtering_bound_logger(LOG_LEVEL),  # what is not written is not made ready either
    logger_factory=structlog.stdlib.LoggerFactory(),
    cache_logger_on_first_use=True,
)
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": structlog.stdlib.ProcessorFormatter,
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.dev.ConsoleRenderer(colors=False)
                if LOG_FORMAT == "console"
                else structlog.processors.JSONRenderer(ensure_ascii=False),
            ],
            "foreign_pre_chain": [*_shared_processors, structlog.processors.format_exc_info],
        }
    },
    "handlers": {"stream": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stream"], "level": LOG_LEVEL},
    "loggers": {
        "django": {"handlers": [], "level": "INFO", "propagate": True},
        "django.request": {"level": "ERROR"},  # `RequestLog` has a line for each request already
        "axes": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},  # and one for each task
        "celery.worker.strategy": {"level": "WARNING"},
        "kombu.connection": {"level": "ERROR"},
        "httpcore2": {"level": "WARNING"},  # at DEBUG it would write down what receivers of webhooks answer
    },
}

# -- admin -----------------------------------------------------------------------------------------------------------

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": _("Diagnosis review"),
    "SITE_HEADER": _("Diagnosis review"),
    "SITE_SYMBOL": "troubleshoot",
    "SITE_URL": None,
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": lambda _request: static("img/favicon.svg")}],
    "SHOW_LANGUAGES": True,
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "DASHBOARD_CALLBACK": "config.dashboard.start_page",
    "STYLES": [lambda _request: static("css/desk.css"), lambda _request: static("css/review.css")],
    "SIDEBAR": {"navigation": "config.navigation.sidebar"},
    # One calm blue. What colours mean stands in static/css/desk.css; this one only says "you can press here".
    "COLORS": {
        "primary": {
            "50": "oklch(97% .012 250)",
            "100": "oklch(94% .024 250)",
            "200": "oklch(88% .05 250)",
            "300": "oklch(80% .085 250)",
            "400": "oklch(71% .115 250)",
            "500": "oklch(65% .125 250)",
            "600": "oklch(49.5% .115 250)",
            "700": "oklch(43% .1 250)",
            "800": "oklch(37% .085 250)",
            "900": "oklch(31% .07 250)",
            "950": "oklch(24% .05 250)",
        }
    },
}
