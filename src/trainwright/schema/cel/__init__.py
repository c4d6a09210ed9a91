"""The Common Expression Language as Kubernetes speaks it: rules of CRDs, match conditions of webhooks.

`compile_expression` parses and compiles once; the program is then called with its variables. Everything is plain
Python closures: about half a million simple rules per second, and no dependency.

Types are checked when a rule runs, not when it is compiled: what the API server would refuse for its types when a CRD
is created (`1 == 1.0`) is evaluated here, or refused then.
"""

from trainwright.schema.cel.compile import Program, compile_expression
from trainwright.schema.cel.typed import convert
from trainwright.schema.cel.values import NONE, CelError, Optional_

__all__ = ["NONE", "CelError", "Optional_", "Program", "compile_expression", "convert"]
