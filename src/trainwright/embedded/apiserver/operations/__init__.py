"""What a client can do with objects: read, watch, create, update, patch, delete, and their subresources."""
