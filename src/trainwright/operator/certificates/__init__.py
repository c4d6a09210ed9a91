"""The webhooks' certificates: what their Secret should hold (`material`), made apart (`process`), kept (`rotation`)."""
