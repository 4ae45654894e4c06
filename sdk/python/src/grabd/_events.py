"""Server-Sent Events."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

MAX_EVENT_CHARS = 1 << 20
"""An event of a grab is far smaller."""


@dataclass(frozen=True)
class ServerSentEvent:
    """One event of a stream."""

    id: str
    data: str


class EventParser:
    """Parses a stream (WHATWG HTML, 9.2.6). Call `push` with each chunk."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._data: list[str] = []
        self._size = 0
        self._id = ""
        self._ended_with_cr = False

    def push(self, chunk: bytes) -> list[ServerSentEvent]:
        """The events that a chunk completes. Raises ValueError if an event is larger than any event of a grab."""
        text = self._decoder.decode(chunk)
        # The two characters of a line end may come in two chunks.
        if self._ended_with_cr and text.startswith("\n"):
            text = text[1:]
            self._ended_with_cr = False
        if text:
            self._ended_with_cr = text.endswith("\r")
        *lines, self._text = re.split(r"\r\n|\r|\n", self._text + text)
        if len(self._text) > MAX_EVENT_CHARS:
            raise ValueError("an event is too large")
        events = []
        for line in lines:
            if not line:
                if self._data:
                    events.append(ServerSentEvent(self._id, "\n".join(self._data)))
                self._data, self._size = [], 0
                continue
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                self._size += len(line)
                if self._size > MAX_EVENT_CHARS:
                    raise ValueError("an event is too large")
                self._data.append(value)
            elif name == "id" and "\0" not in value:
                self._id = value
        return events
