"""Wire types of the Trainer API, the operator's configuration, CRD generation, and names that rooms share. No I/O.

    trainjob, runtime       the Structs of our own kinds
    configuration           the operator's configuration file
    metadata, resources     what every object carries; the table of served types
    wellknown, times        labels, annotations and names; RFC 3339
    events, mergepatches    bodies of Events; merge patches of a status and of finalizers
    keyusage                an X.509 extension, as data
    crds, schema            the CRDs, generated from the Structs; markers, patches and fields say how

This file imports nothing, so that a process pays only for the modules it uses.
"""
