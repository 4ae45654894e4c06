"""Files that appear complete or not at all."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Writes a file. An existing one is replaced."""
    target = Path(path)
    # In the same directory, because a file can only be renamed within a file system.
    partial = target.with_name(f"{target.name}.{uuid.uuid4()}.part")
    try:
        partial.write_bytes(content)
        partial.replace(target)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
