"""The plugins that ship, and how others are found.

`load(configuration)` gives the `Framework` that a build needs. `BUILT_IN` in `registry` is the one ordered table;
there is a file for each plugin. Plugins import `trainwright.api` and `trainwright.pipeline`, never each other.
"""

from trainwright.plugins.registry import Registry as Registry
from trainwright.plugins.registry import load as load
