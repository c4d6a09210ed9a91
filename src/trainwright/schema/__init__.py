"""Schemas, validation, patches and merges of Kubernetes objects, without I/O. Standard library only.

    structural        the schema of a CRD, compiled lazily: prune, default, validate, rules
    custom_resource   the API server's validation of a custom resource on create, update and status update
    validation        types, limits, formats and list keys (with limits, paths, correlation)
    rules, cel        the CEL rules of a schema, and the expression language
    kubernetes        schemas and merge keys of the built-in kinds
    strategic         strategic merge patch
    jsonpatch         JSON patch and JSON merge patch
    selectors         label and field selectors
    names             rules for labels, keys and DNS names
    quantity          exact quantities
    formats, regex    string formats, and Go's regular expressions
    errors, gotext    field errors in the API server's words, and values as Go prints them

Most of it was compared with Kubernetes' own Go libraries on random inputs; tests/unit/schema keeps a sample of their
answers.
"""
