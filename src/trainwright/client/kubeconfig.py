"""The API server's address and our credentials: from kubeconfig files, or from the pod we run in.

`load(path)` reads one file, `load_merged(paths)` several as `$KUBECONFIG` lists them (the first file that sets a name
wins), and `in_cluster()` reads what the kubelet mounts. All give a `Connection`, which a transport is made of.
Nothing here reads the environment or opens a connection: the caller passes paths.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from trainwright.client.credentials import Credential, Credentials, ExecPlugin, StaticCredentials, TokenFile
from trainwright.client.errors import ConfigError
from trainwright.schema.jsonobject import Json

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Connection(msgspec.Struct, frozen=True):
    """What a transport needs to reach one API server as one user."""

    server: str
    credentials: Credentials
    ca: bytes | None = None
    insecure_skip_tls_verify: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = None
    namespace: str = "default"
    context: str = ""
    """The kubeconfig's context; empty in a cluster."""


def load(path: Path | str, *, context: str | None = None) -> Connection:
    """The connection of one kubeconfig file, in its current context or the named one."""
    return load_merged([Path(path)], context=context)


def load_merged(paths: Sequence[Path], *, context: str | None = None) -> Connection:
    """The connection of several files. Those that do not exist are skipped, as kubectl does, unless all are missing."""
    merged = _Merged()
    found = [path for path in paths if path.exists()]
    if not found:
        raise ConfigError(f"no kubeconfig: {', '.join(map(str, paths)) or 'no path given'} does not exist")
    for path in found:
        merged.add(path)
    return merged.connection(context)


def in_cluster(
    *, host: str | None, port: str | None, service_account: Path = SERVICE_ACCOUNT, namespace: str | None = None
) -> Connection:
    """The connection of the pod we run in. `host` and `port` are KUBERNETES_SERVICE_HOST and _PORT."""
    if not host or not port:
        raise ConfigError("not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    ca, token = service_account / "ca.crt", service_account / "token"
    address = f"[{host}]" if ":" in host else host
    namespace_file = service_account / "namespace"
    if namespace is None and namespace_file.exists():
        namespace = namespace_file.read_text().strip()
    return Connection(
        server=f"https://{address}:{port}",
        credentials=TokenFile(token),
        ca=_read(ca, "certificate authority"),
        namespace=namespace or "default",
    )


class _Merged:
    """Clusters, users and contexts of several files; for each name, the first file that has it wins."""

    def __init__(self) -> None:
        self._named: dict[str, dict[str, tuple[Mapping[str, Any], Path]]] = {
            "clusters": {},
            "users": {},
            "contexts": {},
        }
        self._current = ""
        self._paths: list[Path] = []

    def add(self, path: Path) -> None:
        try:
            document = _parsed(path.read_bytes())
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path}: cannot be read as a kubeconfig: {error}") from error
        if document is None:
            document = {}
        if not isinstance(document, dict):
            raise ConfigError(f"{path}: is not a kubeconfig: a mapping is expected")
        self._paths.append(path)
        self._current = self._current or str(document.get("current-context") or "")
        for section, singular in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
            for entry in document.get(section) or ():
                if not isinstance(entry, dict) or "name" not in entry:
                    raise ConfigError(f"{path}: an entry of {section} has no name")
                self._named[section].setdefault(str(entry["name"]), (entry.get(singular) or {}, path))

    def connection(self, context: str | None) -> Connection:
        files = ", ".join(map(str, self._paths))
        wanted = context or self._current
        if not wanted:
            raise ConfigError(f"{files}: no current-context is set; name one of {self._names('contexts')}")
        chosen, _ = self._find("contexts", wanted, files)
        cluster, cluster_path = self._find("clusters", str(chosen.get("cluster", "")), files)
        user: Mapping[str, Any] = {}
        user_path = cluster_path
        if chosen.get("user"):
            user, user_path = self._find("users", str(chosen["user"]), files)
        server = str(cluster.get("server") or "").rstrip("/")
        if not server.startswith(("https://", "http://")):
            raise ConfigError(f"{cluster_path}: cluster {chosen.get('cluster')!r}: server {server!r} is not a URL")
        ca = _data(cluster, "certificate-authority", cluster_path)
        insecure = bool(cluster.get("insecure-skip-tls-verify"))
        if insecure and ca:
            raise ConfigError(
                f"{cluster_path}: a certificate-authority and insecure-skip-tls-verify exclude each other"
            )
        return Connection(
            server=server,
            credentials=_credentials(user, user_path, _cluster_info(cluster, server, ca)),
            ca=ca,
            insecure_skip_tls_verify=insecure,
            tls_server_name=cluster.get("tls-server-name") or None,
            proxy_url=cluster.get("proxy-url") or None,
            namespace=str(chosen.get("namespace") or "default"),
            context=wanted,
        )

    def _find(self, section: str, name: str, files: str) -> tuple[Mapping[str, Any], Path]:
        try:
            return self._named[section][name]
        except KeyError:
            raise ConfigError(f"{files}: {section} has no {name!r}; there are: {self._names(section)}") from None

    def _names(self, section: str) -> str:
        return ", ".join(sorted(self._named[section])) or "none"


def _parsed(text: bytes) -> Any:
    """YAML, or JSON as the local cluster writes it, which spares every command the import of a YAML parser."""
    if text.startswith(b"{"):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            pass  # YAML has braces too
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _credentials(user: Mapping[str, Any], path: Path, cluster: Mapping[str, Any]) -> Credentials:
    if user.get("auth-provider"):
        raise ConfigError(f"{path}: auth-provider was removed from Kubernetes; use an exec plugin instead")
    certificate, key = _data(user, "client-certificate", path), _data(user, "client-key", path)
    if (certificate is None) != (key is None):
        raise ConfigError(f"{path}: client-certificate and client-key are needed together")
    if user.get("exec"):
        return ExecPlugin(user["exec"], directory=path.parent, cluster=cluster)
    if user.get("tokenFile"):
        return TokenFile(path.parent / str(user["tokenFile"]), certificate=certificate, key=key)
    authorization = None
    if user.get("token"):
        authorization = f"Bearer {user['token']}"
    elif user.get("username"):
        pair = f"{user['username']}:{user.get('password', '')}".encode()
        authorization = "Basic " + base64.b64encode(pair).decode()
    return StaticCredentials(Credential(authorization, certificate, key))


def _cluster_info(cluster: Mapping[str, Any], server: str, ca: bytes | None) -> Json:
    """The cluster's data for an exec plugin with provideClusterInfo."""
    info: Json = {"server": server}
    for name in ("tls-server-name", "insecure-skip-tls-verify", "proxy-url"):
        if cluster.get(name):
            info[name] = cluster[name]
    if ca:
        info["certificate-authority-data"] = base64.b64encode(ca).decode()
    for extension in cluster.get("extensions") or ():
        if extension.get("name") == "client.authentication.k8s.io/exec":
            info["config"] = extension.get("extension")
    return info


def _data(entry: Mapping[str, Any], field: str, path: Path) -> bytes | None:
    """`field-data` inline, else the file that `field` names, relative to its kubeconfig."""
    inline = entry.get(f"{field}-data")
    if inline:
        try:
            return base64.b64decode(inline, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ConfigError(f"{path}: {field}-data is not base64: {error}") from error
    if entry.get(field):
        return _read(path.parent / str(entry[field]), field)
    return None


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read the {what} file {path}: {error.strerror}") from error
