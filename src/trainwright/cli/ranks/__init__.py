"""The commands that reach into one rank: `top`, `exec`, `cp`, `port-forward`; `rankpods` finds its pod."""
