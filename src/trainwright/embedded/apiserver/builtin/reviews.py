"""Reviews: questions about access and identity, answered on create and never stored (`access/reviews.py` answers)."""

from __future__ import annotations

from trainwright.embedded.apiserver.builtin.kind import CREATE_ONLY, BuiltinKind

AUTHORIZATION = "authorization.k8s.io"
AUTHENTICATION = "authentication.k8s.io"


class Review(BuiltinKind):
    verbs = CREATE_ONLY
    namespaced = False


class SelfSubjectAccessReviews(Review):
    group, plural, kind = AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview"


class SelfSubjectRulesReviews(Review):
    group, plural, kind = AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview"


class SubjectAccessReviews(Review):
    group, plural, kind = AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview"


class LocalSubjectAccessReviews(Review):
    group, plural, kind = AUTHORIZATION, "localsubjectaccessreviews", "LocalSubjectAccessReview"
    namespaced = True


class TokenReviews(Review):
    group, plural, kind = AUTHENTICATION, "tokenreviews", "TokenReview"


class SelfSubjectReviews(Review):
    group, plural, kind = AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview"
