"""Wire types of the Trainer API and the operator's configuration; CRD generation; the words that rooms share. No I/O.

    trainjob, runtime   the Structs of our own kinds; configuration: the operator's file
    metadata            what every object carries; fields: how typed objects write their fields
    resources           the table of served types
    times               RFC 3339
    crds, markers, patches, schema   the CRDs, generated from the Structs

This file imports nothing, so that a process which needs one of them pays for no other.
"""
