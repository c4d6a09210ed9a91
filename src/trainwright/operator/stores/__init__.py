"""What the operator keeps in memory: `views` of its own kinds, `kinds` of those that plugins name."""
