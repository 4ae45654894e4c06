"""Reads pages with trafilatura from PyPI, for `script/bench reading`: python read.py KIND

KIND is `text` or `markdown`. Reads one page per line from standard input, as read.mjs does, and answers each with a line,
{"read": "…"} or {"error": "…"}.
"""

import gzip
import json
import pathlib
import sys

import trafilatura

# In the scores of the sets, comments are not content. Links and images are what Markdown is compared by.
OPTIONS = {
    "text": {"output_format": "txt", "include_comments": False},
    "markdown": {
        "output_format": "markdown",
        "include_comments": False,
        "include_formatting": True,
        "include_images": True,
        "include_links": True,
    },
}


def main():
    options = OPTIONS[sys.argv[1]]
    for line in sys.stdin:
        page = json.loads(line)
        try:
            html = pathlib.Path(page["file"]).read_bytes()
            if page["file"].endswith(".gz"):
                html = gzip.decompress(html)
            answer = {"read": trafilatura.extract(html, url=page["url"], **options) or ""}
        except Exception as error:  # Whatever a tool raises is its result for this page.
            answer = {"error": str(error)[:500]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
