"""Custom resources: the rules of a kind that comes from a CustomResourceDefinition."""
