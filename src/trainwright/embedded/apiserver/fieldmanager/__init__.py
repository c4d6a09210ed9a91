"""Field ownership: `managedFields` and server-side apply.

    nodes.py        how a value of a schema merges: atomic, map, keyed list, set
    fieldset.py     sets of field paths in the FieldsV1 form, and their algebra
    listitems.py    what tells one list item from another
    validation.py   whether an applied configuration fits its schema
    fields.py       the fields that a value sets
    comparison.py   the fields in which two values differ
    removal.py      a value without some of its fields
    merge.py        an applied configuration merged into a live object
    entries.py      managedFields read into field sets by manager, and written back
    updater.py      ownership through updates and applies
    conflicts.py    the 409 of an apply that others object to
    scale.py        ownership of replicas after a write through the scale subresource
    lastapplied.py  kubectl's annotation: the move from client-side to server-side apply
    manager.py      the way in for handlers

The rules are those of structured-merge-diff, which kube-apiserver uses.
"""
