"""Checks every array shape in every signature of the package while the tests run.

jaxtyping's import hook wraps every function there is, local ones each time they are defined. Only
those whose signature has a shape are wrapped here, and each is checked once: all wrappers together
took more than a third of the time of all tests. Types without a shape are mypy's to check.
"""

import dataclasses
import inspect
from typing import Any

import jaxtyping
from beartype import beartype

SHAPES = ("Bool[", "Float[", "Int[")
"""How a shape begins in an annotation; "UInt[" ends so."""

_jaxtyped = jaxtyping.jaxtyped


def check_shapes(package: str) -> None:
    """Check the shapes of a package that is not imported yet."""
    jaxtyping.jaxtyped = lambda typechecker: checked  # the decorator that the hook adds
    jaxtyping.install_import_hook(package, "beartype.beartype")


def checked(thing: Any) -> Any:
    """A function or a dataclass that checks the shapes in its signature, if it has any."""
    if not _has_shapes(thing):
        return thing
    if inspect.isclass(thing):
        return _jaxtyped(thing, typechecker=beartype)
    return _jaxtyped(beartype(thing), typechecker=None)


def _has_shapes(thing: Any) -> bool:
    found = list(getattr(thing, "__annotations__", {}).values())
    if dataclasses.is_dataclass(thing):
        found = [field.type for field in dataclasses.fields(thing)]
    return any(shape in str(annotation) for annotation in found for shape in SHAPES)
