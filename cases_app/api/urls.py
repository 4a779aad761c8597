"""Routes of cases. No trailing slashes."""

from django.urls import path

from cases_app.api import views

urlpatterns = [
    path("cases", views.CaseListView.as_view(), name="case-list"),
    path("cases/<uuid:case_id>", views.CaseDetailView.as_view(), name="case-detail"),
]
