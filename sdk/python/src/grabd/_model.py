"""What all objects of responses have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar


if TYPE_CHECKING:
    import sys

    if sys.version_info >= (3, 11):
        from typing import Self
    else:
        from typing_extensions import Self


@dataclass(frozen=True, kw_only=True, repr=False)
class Model:
    """An object of a response."""

    raw: Mapping[str, Any] = field(compare=False)
    """All members as they were received, also those that this version of the library does not know."""

    _nested: ClassVar[Mapping[str, type[Model]]] = {}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Converts the JSON of a response.

        Raises ValueError if a member that every version of the service sends is missing.
        """
        if not isinstance(value, Mapping):
            raise ValueError(f"{cls.__name__} is {type(value).__name__}, not an object")
        members: dict[str, Any] = {"raw": value}
        for member in fields(cls):
            name = member.name
            if name == "raw":
                continue
            # Names that are keywords have an underscore here.
            received = name.removesuffix("_")
            if received in value:
                members[name] = cls._convert(name, value[received])
            elif member.default is MISSING:
                raise ValueError(f"{cls.__name__} has no {received}")
        return cls(**members)

    @classmethod
    def _convert(cls, name: str, value: Any) -> Any:
        model = cls._nested.get(name)
        if isinstance(value, list):
            return tuple(value if model is None else (model.from_json(item) for item in value))
        return value if model is None or value is None else model.from_json(value)

    def __repr__(self) -> str:
        members = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.name != "raw")
        return f"{type(self).__name__}({members})"
