"""Types of the file `elements` of a grab, which `also=["elements"]` asks for."""

from __future__ import annotations

from typing import Literal, TypedDict


class CoveredBy(TypedDict):
    """What is in front of an element."""

    selector: str | None
    """Matches what is in front. None in shadow trees."""
    name: str
    """Its accessible name, or an empty text."""


class Box(TypedDict):
    """A place in pixels of the image."""

    x: int
    y: int
    width: int
    height: int


class ImageSize(TypedDict):
    """The size of the image in pixels."""

    width: int
    height: int


class _ElementStates(TypedDict, total=False):
    url: str
    """The target of a link."""
    checked: bool | Literal["mixed"]
    pressed: bool | Literal["mixed"]
    disabled: bool
    required: bool
    expanded: bool
    selected: bool
    value: str
    """The value of a field, a list or a slider. Values of passwords are left out."""
    frame: str | None
    """The selectors of the frames that lead to it. None if one of them has none. Left out outside of frames."""


class PageElement(_ElementStates):
    """An element that a user can operate, as the image shows it."""

    role: str
    """The ARIA role; `generic` if there is none."""
    name: str
    """The accessible name."""
    selector: str | None
    """Matches this element only. None in shadow trees."""
    box: Box
    covered_by: CoveredBy | Literal["unknown"] | None
    """What a click on it would meet instead. None if nothing is in front of it, `unknown` if that cannot be said."""


class ElementsFile(TypedDict):
    """The file."""

    image: ImageSize
    elements: list[PageElement]
