"""Admission: webhooks and built-in plugins that may change or refuse a write before it is stored."""
