"""All routes."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from config import health, widget
from config.languages import set_language
from config.metrics import metrics_page
from sessions_app.api.traces import TracesView

admin.autodiscover()

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index"), name="home"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("i18n/setlang/", set_language, name="set_language"),
    path("widget.js", widget.script, name="widget"),
    path("demo", widget.demo, name="demo"),
    path("admin/metrics/", admin.site.admin_view(metrics_page), name="metrics"),
    path("admin/", admin.site.urls),
    path("api/", include("sessions_app.api.urls")),
    path("v1/traces", TracesView.as_view(), name="otlp-traces"),
    path("api/", include("feedback_app.api.urls")),
    path("api/", include("cases_app.api.urls")),
    path("api/schema", SpectacularAPIView.as_view(), name="schema"),
    # Without OPTIONS, which DRF would answer with metadata, for which this page has no template: a 500.
    path("api/docs", SpectacularSwaggerView.as_view(url_name="schema", http_method_names=["get", "head"]), name="docs"),
]

handler400 = "config.api.bad_request"
handler403 = "config.api.permission_denied"
handler404 = "config.api.page_not_found"
handler500 = "config.api.server_error"
