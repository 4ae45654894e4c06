#!/usr/bin/env python3
"""Makes PDFs of report.html with each member of the option `pdf`, and pictures of their pages.

`tests/site/options/pdfs.py` writes docs/pictures/pdf. It needs a built grabd as capture.py does, pdftoppm of poppler,
and Pillow.
"""

import io
import json
import pathlib
import subprocess
import sys
import tempfile

from PIL import Image, ImageOps

import capture

OUT = capture.ROOT / "docs/pictures/pdf"
MAX_PICTURE_BYTES = 60_000
DPI, MAX_PAGES, GAP = 42, 3, 8

# Of each picture: its name, the members of `pdf`, the other options, and what one sees.
ROWS = [
    ("default", {}, {}, "A4 with margins of 10 mm, and all colours"),
    ("format", {"format": "a5", "landscape": True}, {}, "paper of another size, turned"),
    ("size", {"width_mm": 100, "height_mm": 180}, {}, "paper of any size"),
    ("single_page", {"single_page": True, "width_mm": 160}, {}, "one page, as high as the content"),
    ("css_page_size", {"css_page_size": True}, {}, "the size and the margins of the page's `@page`, here 150 x 150 mm and 25 mm"),
    ("margins", {"margin_mm": 15, "margin_left_mm": 60}, {}, "margins on all sides, and on one"),
    ("scale", {"scale": 0.6}, {}, "smaller content: more of it on a page"),
    ("background", {"background": False}, {}, "no colours and images of the background"),
    ("pages", {"pages": "2"}, {}, "some of the pages"),
    ("header", {"margin_mm": 20, "header": "{title}|{date}", "footer": "Confidential||{page} / {pages}"}, {},
     "a header and a footer on each page"),
    ("first_page", {"margin_mm": 20, "first_page_header": "Example Ltd.|1 Main Street", "footer": "{page} / {pages}",
                    "first_page_footer": ""}, {}, "others on the first page: a letterhead, and page numbers from the second page on"),
    ("media", {}, {"media": "print"}, "the page's styles for print: the links are gone, and the headings have lines"),
]

README = """# What the members of `pdf` do

Each row has the first pages of the PDF of the same document. `tests/site/options/pdfs.py` wrote this page: a running grabd
made each PDF, and poppler made the pictures of its pages. [FILES.md](../../FILES.md#pdf) describes the members.
What is not on the paper has no picture: `tagged` adds the structure for screen readers, and `outline` the bookmarks.

| Options | Pages | What one sees |
| --- | --- | --- |
"""


def picture_of(pdf):
    """The first pages beside each other."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory)
        (path / "file.pdf").write_bytes(pdf)
        subprocess.run(["pdftoppm", "-r", str(DPI * 2), "-l", str(MAX_PAGES), "-png", path / "file.pdf", path / "page"],
                       check=True)
        pages = [Image.open(file).convert("RGB") for file in sorted(path.glob("page*.png"))]
        pages = [page.resize((page.width // 2, page.height // 2), Image.LANCZOS) for page in pages]
        pages = [ImageOps.expand(page, 1, "#8895a0") for page in pages]
    width = sum(page.width for page in pages) + GAP * (len(pages) + 1)
    picture = Image.new("RGB", (width, max(page.height for page in pages) + 2 * GAP), "#dfe5ea")
    left = GAP
    for page in pages:
        picture.paste(page, (left, GAP))
        left += page.width + GAP
    body = io.BytesIO()
    picture.save(body, "WEBP", quality=70, method=6)
    return body.getvalue()


def main():
    if sys.argv[1:]:
        sys.exit(__doc__)
    OUT.mkdir(parents=True, exist_ok=True)
    site = capture.Site()
    rows = []
    with capture.Service() as service:
        for name, members, options, seen in ROWS:
            members_given = {"pdf": members} if members else {}
            grab = service.grab({"url": f"{site.own}/report", "also": ["pdf"], **members_given, **options})
            [file] = [file for file in grab["files"] if file["kind"] == "pdf"]
            body = picture_of(service.download(file["url"])[0])
            if len(body) > MAX_PICTURE_BYTES:
                sys.exit(f"{name} has {len(body)} bytes, at most {MAX_PICTURE_BYTES} are allowed")
            (OUT / f"{name}.webp").write_bytes(body)
            given = json.dumps({"also": ["pdf"], **members_given, **options}, ensure_ascii=False)[1:-1].replace("|", "\\|")
            rows.append(f"| `{given}` | ![{name.replace('_', ' ')}]({name}.webp) | {seen} |")
            print(name, len(body), flush=True)
    (OUT / "README.md").write_text(README + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
