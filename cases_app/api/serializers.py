"""The wire form of cases."""

from rest_framework import serializers

from cases_app.models import CaseLibrary
from sessions_app.wire.fields import MomentField


class CaseSerializer(serializers.ModelSerializer[CaseLibrary]):
    """Every column of a case."""

    caseId = serializers.UUIDField(source="case_id")
    diagnosisId = serializers.CharField(source="diagnosis_id", allow_null=True)
    sourceType = serializers.CharField(source="source_type")
    faultCategory = serializers.CharField(source="fault_category_id")
    errorCode = serializers.CharField(source="error_code")
    rootCause = serializers.CharField(source="root_cause")
    createdBy = serializers.CharField(source="created_by")
    mergedInto = serializers.UUIDField(source="merged_into_id", allow_null=True)
    isFlagged = serializers.BooleanField(source="is_flagged")
    reviewedBy = serializers.SlugRelatedField(source="reviewed_by", slug_field="username", read_only=True)  # type: ignore[var-annotated]
    reviewedAt = MomentField(source="reviewed_at", allow_null=True)
    createdAt = MomentField(source="created_at")
    updatedAt = MomentField(source="updated_at")

    class Meta:
        model = CaseLibrary
        fields = (
            "caseId", "diagnosisId", "sourceType", "faultCategory", "errorCode", "title", "rootCause", "solution",
            "createdBy", "status", "mergedInto", "isFlagged", "reviewedBy", "reviewedAt", "createdAt", "updatedAt",
        )  # fmt: skip
