"""Initializers: a dataset or a model, fetched before training begins.

One file on its way: `settings` reads the environment → `schemes` finds the source (`huggingface`, `s3`, `https`,
`localfiles`), which lists `Item`s → `plan` sees which of them the `target` has, and whether the others have room →
`fetch` reads ranges of an item into a `partial` file of a `store`, tries again (`retry`) and checks the digest →
the `target` takes the whole file in. `run` tells that story; `progress` tells the user.

Words: a *source* is where the files are. An *item* is one file of it. A *store* gathers items by key: in the cache
that initializers of this machine share, or in the target's own `.trainwright/parts`. The *target* is the directory
that training reads.

A room of its own: it knows nothing of Kubernetes, and of this project only the version. docs/initializers.md is the
user's side.
"""
