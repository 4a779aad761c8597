"""Reading cases."""

from __future__ import annotations

import uuid

import django_filters
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cases_app.api.serializers import CaseSerializer
from cases_app.models import CaseLibrary, CaseStatus, SourceType
from sessions_app.access.permissions import CanRead
from sessions_app.errors import UnknownObjectError


class CaseFilter(django_filters.FilterSet):
    """Filters of the case list."""

    status = django_filters.ChoiceFilter(choices=CaseStatus.choices)
    sourceType = django_filters.ChoiceFilter("source_type", choices=SourceType.choices)
    faultCategory = django_filters.CharFilter("fault_category_id")
    errorCode = django_filters.CharFilter("error_code", method="of_it_or_merged")
    diagnosisId = django_filters.CharFilter("diagnosis_id", method="of_it_or_merged")

    class Meta:
        model = CaseLibrary
        fields: list[str] = []

    def of_it_or_merged(self, cases: QuerySet[CaseLibrary], column: str, value: str) -> QuerySet[CaseLibrary]:
        """A code or session of a merged case leads to the one that was kept."""
        merged = CaseLibrary.objects.filter(**{column: value}).exclude(merged_into=None).values("merged_into")
        return cases.filter(Q(**{column: value}) | Q(pk__in=merged))


class CaseListView(generics.ListAPIView[CaseLibrary]):
    """Published cases, newest first; those of another state only for who names it with `status`.

    An agent that reads the list gets what a reviewer published, without having to know that it must ask for it.
    """

    permission_classes = [CanRead]
    queryset = CaseLibrary.objects.none()  # for the document; `get_queryset` answers requests
    serializer_class = CaseSerializer
    filterset_class = CaseFilter

    def get_queryset(self) -> QuerySet[CaseLibrary]:
        """Cases of every state where one is named, else the published ones."""
        cases = CaseLibrary.objects.select_related("reviewed_by")
        return cases if self.request.query_params.get("status") else cases.published()


class CaseDetailView(APIView):
    """One case."""

    permission_classes = [CanRead]

    @extend_schema(responses=CaseSerializer)
    def get(self, request: Request, case_id: uuid.UUID) -> Response:
        """Every column."""
        case = CaseLibrary.objects.select_related("reviewed_by").filter(pk=case_id).first()
        if case is None:
            raise UnknownObjectError(_("There is no case %(id)s.") % {"id": case_id})
        return Response(CaseSerializer(case).data)
