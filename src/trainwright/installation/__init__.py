"""The objects of an installation of the operator: those of `manifests/`, with the values that a platform team chooses.

    manifests/ (kustomize) → kustomize.py → composition.py → trees with places for values
                                             values.py        the values: defaults, comments, schema
    trees + values → tree.resolve → objects          `trainwright install`
    trees          → tools/chart.py → charts/trainwright   the same for Helm

The kustomize files are the one source. A switch of the chart is a component of kustomize; a test compares what Helm,
kustomize and `resolve` make of the same choices.
"""
