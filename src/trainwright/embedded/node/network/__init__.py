"""Names, addresses and ports of pods on one machine."""
