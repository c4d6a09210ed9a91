"""The request path: HTTP in, a `Call` to an operation, an `Answer` out; and the documents that describe the API."""
