"""`s3://`: objects of a bucket, by requests that this package signs itself.

`credentials` finds who we are → `signing` signs a request (pure) → `source` lists the bucket, whose XML `answers`
reads, and reads ranges of objects. An S3 library would bring 15 to 44 MB for these four pages; docs/dependencies.md
has the figures.
"""
