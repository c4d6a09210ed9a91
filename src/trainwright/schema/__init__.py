"""What Kubernetes knows of objects without any I/O: schemas, their words, merges and patches. Standard library only.

    structural        a schema, compiled lazily: prune, default, validate, rules; list types for server-side apply
    custom_resource   what the API server checks of a custom resource on create, update and status update, in its order
    kubernetes        the built-in kinds' schemas and merge keys
    cel, rules        the expression language, and the rules that schemas write in it
    strategic         strategic merge patch; jsonpatch: JSON patch and JSON merge patch
    selectors         label and field selectors; names: what labels, keys and DNS names may be
    quantity          exact quantities; formats, regex: strings as Go's libraries see them
    errors, gotext    field errors in the API server's words, values as Go prints them

Most of it was held against Kubernetes' own Go libraries on random inputs; tests/unit/schema keeps a sample of their
answers.
"""
