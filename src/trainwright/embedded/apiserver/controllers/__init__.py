"""What the server does on its own: garbage collection, namespaces, custom resource definitions, upkeep."""
