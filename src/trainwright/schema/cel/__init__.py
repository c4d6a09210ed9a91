"""The Common Expression Language (CEL) as Kubernetes uses it in rules of CRDs and match conditions of webhooks.

`compile_expression` compiles an expression once; the program is then called with its variables. Programs are plain
Python closures: about half a million simple rules per second, and no dependency.

Types are checked when a rule runs, not when it is compiled: an expression that the API server refuses for its types
when a CRD is created (`1 == 1.0`) is evaluated here, or fails then.
"""

from trainwright.schema.cel.compile import Program, compile_expression
from trainwright.schema.cel.typed import convert
from trainwright.schema.cel.values import NONE, CelError, Optional_

__all__ = ["NONE", "CelError", "Optional_", "Program", "compile_expression", "convert"]
