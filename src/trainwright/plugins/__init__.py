"""The plugins that ship, and how others are found.

`load(…)` gives the `Framework` that a build needs; a `Registry` also follows the directory of plugins. There is a file
for each plugin, and `BUILT_IN` in `registry` is their ordered table. Plugins import `trainwright.api` and
`trainwright.pipeline`, never each other. Besides them:

    registry                 which plugins run, and in which order
    installed                entry points of other packages
    directory, pluginfile    files of a directory: when to read them, and how
    found                    what a search brings: plugins, and what is broken
    override_rules, flux_scripts, torchtune    parts of a plugin that are a file of their own
"""

from trainwright.plugins.registry import Registry as Registry
from trainwright.plugins.registry import load as load
