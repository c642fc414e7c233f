"""`calculate`: arithmetic, without running code."""

from __future__ import annotations

import math
from typing import Any

from turnkeeper.tools.tool import Tool, tool

_LONGEST = 500
_DIGITS = 400


def calculate_tool() -> Tool:
    """The tool."""

    @tool(
        read_only=True,
        triggers=(
            "how much is",
            "how many is",
            "calculate",
            "compute",
            "plus",
            "minus",
            "times",
            "divided by",
            "sum of",
            "+",
            "*",
        ),
        examples=(
            ("how much is 12 * 9?", {"expression": "12 * 9"}),
            ("what is 31 - 8?", {"expression": "31 - 8"}),
            ("What's (3 + 4) / 2?", {"expression": "(3 + 4) / 2"}),
        ),
    )
    async def calculate(expression: str) -> str:
        """Calculates arithmetic: + - * / // % **, brackets, sqrt, sin, cos, tan, log, exp, round, min, max, pi, e.

        Args:
            expression: For example (2 + 3) * 4.5 or sqrt(2) ** 3.
        """
        return evaluate(expression)

    return calculate


def evaluate(expression: str) -> str:
    """The value of an arithmetic expression, in text. Raises ValueError with a sentence that says what is wrong."""
    from simpleeval import EvalWithCompoundTypes, InvalidExpression  # pyright: ignore  # heavy for a start, light for a use

    text = expression.strip().replace("×", "*").replace("÷", "/").replace("−", "-").replace(",", ", ")
    if not text:
        raise ValueError("the expression is empty")
    if len(text) > _LONGEST:
        raise ValueError(f"the expression has over {_LONGEST} characters")
    if "^" in text:
        raise ValueError("write powers with **, not ^")
    evaluator: Any = EvalWithCompoundTypes(functions=_functions(), names={"pi": math.pi, "e": math.e, "tau": math.tau})
    try:
        value: object = evaluator.eval(text)
    except ZeroDivisionError:
        raise ValueError("division by zero") from None
    except RecursionError:
        raise ValueError("the expression is nested too deep") from None
    except (InvalidExpression, SyntaxError, TypeError, ValueError, OverflowError, AttributeError, KeyError) as problem:
        raise ValueError(f"it can't be calculated: {' '.join(str(problem).split())[:200]}") from None
    return _readable(value)


def _functions() -> dict[str, Any]:
    names = (
        "sqrt",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "log",
        "log2",
        "log10",
        "exp",
        "floor",
        "ceil",
        "radians",
        "degrees",
    )
    own: dict[str, Any] = {name: getattr(math, name) for name in names}
    return own | {
        "abs": abs,
        "round": round,
        "min": min,
        "max": max,
        "sum": sum,
        "factorial": _factorial,
        "int": int,
        "float": float,
    }


def _factorial(number: int) -> int:
    if number > 200:
        raise ValueError("factorial of more than 200")
    return math.factorial(number)


def _readable(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"the result is no number but {str(value)[:100]!r}")
    if isinstance(value, int):
        if value.bit_length() > _DIGITS * 4:
            raise ValueError(f"the result has over {_DIGITS} digits")
        return str(value)
    if not math.isfinite(value):
        raise ValueError("the result is not a finite number")
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(round(value, 12))
