"""HTTP/1.1 on asyncio, parsed by llhttp (httptools): what the client, the operator and the local cluster speak.

`Server`, with an answering function such as `Application`, serves; `Pool` and its `Exchange`s ask. Nothing here knows
Kubernetes.
"""
