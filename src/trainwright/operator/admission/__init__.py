"""The admission webhooks: `webhooks` speaks HTTP, `decisions` finds the objects that the pipeline judges by."""
