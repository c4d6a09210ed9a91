"""Who owns which field: `managedFields` and server-side apply.

    nodes.py       how a value of a schema merges: atomic, map, list by keys, set
    fieldset.py    sets of field paths in the FieldsV1 form, and their algebra
    walk.py        a value's fields, the difference of two values, removal of fields
    merge.py       an applied configuration merged into a live object
    updater.py     Apply and Update on named sets, conflicts
    scale.py       who owns the replicas after a write through the scale subresource
    lastapplied.py kubectl's annotation: taking over from client-side apply
    manager.py     the managedFields entries of an object: the way in for handlers

The rules are those of structured-merge-diff, which kube-apiserver uses.
"""
