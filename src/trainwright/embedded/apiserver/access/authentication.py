"""Who is asking: the kubeconfig's token, further static tokens, or a signed service account token."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from trainwright.embedded.apiserver.access.tokens import ServiceAccountTokens, TokenError
from trainwright.embedded.apiserver.access.users import User
from trainwright.embedded.apiserver.errors import StatusError

ADMIN = User("kubernetes-admin", groups=("system:masters", "system:authenticated"))
ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))


class Authenticator:
    """`users` maps further tokens to users without rights of their own; RBAC decides what they may do."""

    def __init__(
        self, admin_token: str, accounts: ServiceAccountTokens, users: Mapping[str, User] | None = None
    ) -> None:
        self._admin = admin_token.encode()
        self._accounts = accounts
        self._users = {token.encode(): user for token, user in (users or {}).items()}

    def user_of(self, header: str) -> User:
        """Raises 401 for bad credentials. Without any, the user is anonymous and has no rights beyond health and
        version."""
        if not header:
            return ANONYMOUS
        scheme, _, token = header.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise unauthorized()
        user = self.user_of_token(token)
        if user is None:
            raise unauthorized()
        return user

    def user_of_token(self, token: str) -> User | None:
        raw = token.encode(errors="replace")
        if hmac.compare_digest(raw, self._admin):
            return ADMIN
        for known, user in self._users.items():
            if hmac.compare_digest(raw, known):
                return user
        try:
            return self._accounts.user_of(token)
        except TokenError:
            return None


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized")
