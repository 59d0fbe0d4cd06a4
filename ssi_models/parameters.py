"""Model parameters: how they are given, read, set and checked, and a digest of them."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray

from ltr_base.former import present_names
from ltr_base.names import nearest

P = TypeVar("P", bound="Parameters")

#: Value of a parameter that is to be chosen by fitting.
AUTO = "auto"


class NotFittedError(ValueError, AttributeError):
    """A method that needs a fitted object was called before ``fit`` or ``load``."""


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def model_class(cls: type[P]) -> type[P]:
    """Make a model class a dataclass with keyword parameters, compared by identity.

    If it has ``training`` options, the constructor also takes each of them by its own name, as
    files and command lines do: ``LowRankSSI(margin=0.5)``.
    """
    made = dataclass(kw_only=True, eq=False, repr=False)(cls)
    init = made.__init__

    @functools.wraps(init)
    def from_parameters(self: P, *args: Any, **params: Any) -> None:
        args = tuple(plain_number(value) for value in args)
        arguments = self._arguments(params)
        known = inspect.signature(init).parameters
        if unknown := [name for name in arguments if name not in known]:
            raise TypeError(self._unknown(unknown[0]))
        init(self, *args, **arguments)

    made.__init__ = from_parameters  # type: ignore[assignment, method-assign]
    return made


class Parameters:
    """Parameters that the constructor stores as given (numbers of numpy as numbers of Python), so
    that ``sklearn.base.clone`` works."""

    #: Former names of parameters, which files and settings may still use -> present names.
    former_params: ClassVar[Mapping[str, str]] = {}
    #: Values of parameters that are missing in files older than the parameters.
    before_params: ClassVar[dict[str, Any]] = {}

    #: Training options, for models that are trained by gradient steps.
    training: Any

    @classmethod
    def default_params(cls) -> dict[str, Any]:
        """The default of each parameter by name, with each training option under its own name."""
        defaults = inspect.signature(cls).parameters.items()
        return _flat({name: parameter.default for name, parameter in defaults})

    @classmethod
    def param_types(cls) -> dict[str, Any]:
        """The declared type of each parameter by name, with each training option under its own
        name."""
        types = {name: p.annotation for name, p in inspect.signature(cls).parameters.items()}
        if types.pop("training", None) is not None:
            types |= {option.name: option.type for option in fields(cls.training)}
        return types

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, with each training option under its own name."""
        return _flat(
            {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}
        )

    def set_params(self, **params: Any) -> Self:
        """Set parameters, training options by their own names or all at once (``training``).

        Raises:
            ValueError: unknown name.
        """
        arguments = self._arguments(params, getattr(self, "training", None))
        known = list(inspect.signature(type(self)).parameters)
        for name, value in arguments.items():
            if name not in known:
                raise ValueError(self._unknown(name))
            setattr(self, name, value)
        return self

    @classmethod
    def _arguments(cls, params: Mapping[str, Any], training: Any = None) -> dict[str, Any]:
        """The constructor's arguments: ``params`` by their present names, training options
        gathered into ``training``."""
        given = {name: plain_number(value) for name, value in params.items()}
        arguments = present_names(given, cls.former_params)
        training = arguments.get("training", training or getattr(cls, "training", None))
        if not (training is None or hasattr(training, "__dataclass_fields__")):
            raise TypeError(
                f"training must be options, such as TrainingOptions(margin=0.5), got {training!r}; "
                "each may also be given by its own name"
            )
        options = {} if training is None else {f.name for f in fields(training)} & arguments.keys()
        if options:
            given = {name: arguments.pop(name) for name in options}
            arguments["training"] = replace(training, **given)
        return arguments

    @classmethod
    def _unknown(cls, name: str) -> str:
        return f"{cls.__name__} has no parameter {name!r}; {nearest(name, cls.default_params())}"

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({parameters})"


def plain_number(value: Any) -> Any:
    """A number of numpy, as grids have them, as one of Python, with which arrays of float32 stay
    float32 and which JSON knows; other values unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def _flat(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters with ``training`` replaced by its options."""
    training = params.pop("training", None)
    return params if training is None else {**params, **vars(training)}


def _is_number(value: Any) -> bool:
    if isinstance(value, Integral):
        return not isinstance(value, bool) and abs(int(value)) < 2**63
    return isinstance(value, Real) and value == value


#: How messages name the types that parameters are declared with, and what is of each type.
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "bool": ("True or False", lambda value: isinstance(value, bool)),
    "int": ("a whole number", lambda value: isinstance(value, Integral) and _is_number(value)),
    "float": ("a number", _is_number),
    "Sequence[float]": (
        "several numbers",
        lambda value: isinstance(value, (tuple, list)) and all(map(_is_number, value)),
    ),
    "str": ("a word", lambda value: isinstance(value, str)),
    "None": ("None", lambda value: value is None),
}
_AUTOMATIC = (repr(AUTO), lambda value: isinstance(value, str) and value == AUTO)


def check_kinds(params: Mapping[str, Any], types: Mapping[str, Any]) -> None:
    """Raise ValueError naming a parameter that is of none of its declared types, such as "int |
    None"; beside a number or truth value, "str" stands for the word "auto". Whole numbers have 64
    bits: kernels are compiled for them. Other types are not checked."""
    for name, value in params.items():
        declared = getattr(types[name], "__name__", str(types[name])).split(" | ")
        if any(kind not in _KINDS for kind in declared):
            continue
        kinds = [_KINDS[kind] for kind in declared]
        if {"bool", "int", "float"} & set(declared):
            kinds = [_AUTOMATIC if kind is _KINDS["str"] else kind for kind in kinds]
        if not any(fits(value) for _, fits in kinds):
            wanted = " or ".join(wanted for wanted, _ in kinds)
            raise ValueError(f"{name} must be {wanted}, got {value!r}")


def check_least(given: object, least: float, *names: str) -> None:
    """Raise ValueError naming a parameter, of a checked kind, that is below ``least``."""
    for name in names:
        value = getattr(given, name)
        if value is not None and value < least:
            raise ValueError(f"{name} must be {least} or more, got {value!r}")


def check_positive(given: object, *names: str) -> None:
    """Raise ValueError naming a parameter, of a checked kind, that is not positive and finite."""
    for name in names:
        if not 0 < getattr(given, name) < np.inf:
            value = getattr(given, name)
            raise ValueError(f"{name} must be positive and finite, got {value!r}")


def check_choice(name: str, value: Any, choices: Any) -> None:
    """Raise ValueError if a parameter's value is not one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} {value!r} is unknown; use one of {tuple(choices)}")


def digest_of(parameters: Sequence[Any], given: Iterable[NDArray[Any]]) -> str:
    """SHA-256 (hex) of parameters and arrays."""
    digest = hashlib.sha256(repr(parameters).encode())
    for array in given:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)  # no copy
    return digest.hexdigest()
