"""The wire form of the built-in kinds: JSON as Go's types read and write it, and protobuf bodies."""
