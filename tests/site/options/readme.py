#!/usr/bin/env python3
"""Captures the picture of the README, docs/picture.webp: a page with and without `block: ["cookie_banners"]`.

It needs a built grabd, as capture.py does. The page is a sample of the start page with a dialog that asks for consent.
"""

import base64

import capture

PAGE = {"width": 1180, "height": 690, "format": "webp", "quality": 85}
MAX_BYTES = 150_000


def main():
    page = (capture.ROOT / "crates/engine/src/samples/daylight.html").read_text()
    page = page.replace("</body>", (capture.PAGES / "consent.html").read_text() + "</body>")
    picture = (capture.PAGES / "readme.html").read_text()
    with capture.Service() as service:
        for name, options in {"before": {}, "after": {"block": ["cookie_banners"]}}.items():
            grab = service.grab({"html": page, **PAGE, **options})
            if grab["warnings"]:
                raise SystemExit(f"{name}: {grab['warnings']}")
            image = base64.b64encode(service.download(grab["image_url"])[0]).decode()
            picture = picture.replace("{" + name + "}", f"data:image/webp;base64,{image}")
        picture = picture.replace("{result}", grab["consent"]["result"])
        grab = service.grab({"html": picture, "width": 1280, "height": 400, "full_page": True, "scale": 1.5,
                             "format": "webp", "quality": 88})
        body = service.download(grab["image_url"])[0]
    if len(body) > MAX_BYTES:
        raise SystemExit(f"The picture has {len(body)} bytes, at most {MAX_BYTES} are allowed")
    (capture.ROOT / "docs/picture.webp").write_bytes(body)


if __name__ == "__main__":
    main()
