"""The commands for operators and images: `plugins`, `initialize`, `operator`."""
