"""Acting as another: `kubectl --as` and the `Impersonate-*` headers behind it.

In: the user who asks and the request's headers. Out: the user whose rights count from here on. It takes the right to
`impersonate` each user, group or service account that is named; a header that nobody may use is refused, never ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.embedded.apiserver.access.rbac import Attributes
from trainwright.embedded.apiserver.access.users import User
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.http.headers import Headers

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.access.rbac import Authorizer

PREFIX = "impersonate-"
ACCOUNT = "system:serviceaccount:"
AUTHENTICATED = "system:authenticated"


def acting_as(authorizer: Authorizer, user: User, headers: Headers) -> User:
    """The impersonated user, or `user` itself when no such header is there."""
    if not any(name.lower().startswith(PREFIX) for name in headers):
        return user
    name = headers.get("Impersonate-User", "")
    if not name:
        raise StatusError(400, f"requesting uid, groups or user-extra for {user.name} without impersonating a user")
    for header in headers:
        if header.lower().startswith(PREFIX) and header.lower() not in ("impersonate-user", "impersonate-group"):
            raise StatusError(400, f"{header} is not supported: only users and groups can be impersonated here")
    groups = headers.getall("Impersonate-Group", [])
    if name.startswith(ACCOUNT) and name.count(":") == 3:
        namespace, _, account = name.removeprefix(ACCOUNT).partition(":")
        authorizer.check(Attributes(user, "impersonate", resource="serviceaccounts", namespace=namespace, name=account))
        groups = groups or ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    else:
        authorizer.check(Attributes(user, "impersonate", resource="users", name=name))
    for group in headers.getall("Impersonate-Group", []):
        authorizer.check(Attributes(user, "impersonate", resource="groups", name=group))
    if name != "system:anonymous" and AUTHENTICATED not in groups:
        groups = [*groups, AUTHENTICATED]
    return User(name, groups=tuple(groups))
