"""A Kubernetes-compatible API server in one process, on loopback, with one file of state.

    async with ApiServer(directory=Path("state"), port=0) as server:
        server.url            # https://127.0.0.1:PORT (the same port as last time if port=0 and it is free)
        server.kubeconfig     # Path, mode 0600, CA and token inline
        server.ca_file        # Path of the CA's certificate
        server.token          # the administrator's bearer token
        server.kubelet_token  # what this server shows to nodes when it asks for logs
        server.issue_certificate("node", ["127.0.0.1"])   # Certificate(cert, key): paths, signed by the cluster's CA
        await server.install(manifests)                   # CRDs, runtimes, any objects: forced server-side apply

`directory` is made with mode 0700. A directory that another process serves, that is damaged or written by a newer
version raises a `StoreError` whose text says what to do. `users` maps further bearer tokens to user names that have
only the rights RBAC gives them.

A request's way: http/listener.py (HTTPS) or inprocess.py → http/handler.py (the boundary: who asks, may they) →
http/router.py (what the path names) → http/dispatch.py → operations/ (reading, watching, mutations, patching,
subresources) → operations/creating.py, updating.py or deletion.py → storage/state.py (memory) → storage/sqlite.py
(disk). What a kind decides for itself: types.py, builtin/, custom/. What the server does on its own: controllers/.
"""

from trainwright.embedded.apiserver.access.users import User
from trainwright.embedded.apiserver.controllers.supervisor import ControllerFailed
from trainwright.embedded.apiserver.directory import ApiServer
from trainwright.embedded.apiserver.storage.store import StoreError

__all__ = ["ApiServer", "ControllerFailed", "StoreError", "User"]
