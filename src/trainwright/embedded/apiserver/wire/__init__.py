"""The wire form of the built-in kinds: what Go would read from and write to JSON, and protobuf bodies."""
