#!/usr/bin/env python3
"""Captures the pages of this directory with and without each capture option that changes what one sees.

`tests/site/options/capture.py` writes docs/pictures. With `ads [ROUNDS]`, it prints the time and the bytes of ten
pages with ads, with and without `block: ["ads"]`, one after the other in each round. Both need a built grabd: the
program that GRABD names, or target/release/grabd. The pages are served on 127.0.0.2 and 127.0.0.3.
"""

import http.server
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

PAGES = pathlib.Path(__file__).resolve().parent
ROOT = PAGES.parent.parent.parent
OUT = ROOT / "docs/pictures"
MAX_PICTURE_BYTES = 25_000
MAX_FOLDER_BYTES = 600_000

# What ad servers send: scripts and pictures of usual sizes, after a usual time.
SCRIPT_BYTES, PICTURE_BYTES, AD_DELAY_S = 60_000, 40_000, 0.04
BANNER = ('<svg xmlns="http://www.w3.org/2000/svg" width="600" height="90"><rect width="600" height="90" fill="#d33"/>'
          '<text x="300" y="56" fill="#fff" font-size="32" text-anchor="middle">BUY NOW</text></svg>')

# The class of the slots of each page, and how many there are at the top, between paragraphs, and in the sidebar.
AD_PAGES = {"news": ("ad-slot", 1, 4, 2), "blog": ("ad-slot", 0, 3, 1), "forum": ("ad-row", 1, 6, 0),
            "shop": ("promo-box", 0, 2, 2), "video": ("ad-slot", 2, 1, 3), "recipe": ("ad-row", 1, 8, 1),
            "weather": ("promo-box", 1, 2, 1), "sports": ("ad-slot", 2, 5, 2), "jobs": ("ad-row", 0, 3, 3),
            "lyrics": ("promo-box", 3, 3, 2)}

ADS = "||127.0.0.3^\n##.ad-slot\n##.ad-row\n##.promo-box\n"


def ad_page(name, other):
    """A page whose slots are filled by scripts of another site, each of which loads a second script and a frame."""
    slot_class, top, middle, side = AD_PAGES[name]
    slot = (f'<div class="{slot_class}" style="min-height:90px">Advertisement'
            f'<script src="{other}/ad.js?{name}-%d"></script></div>')
    text = "<p>" + f"The {name} page has a paragraph of words that say nothing in particular. " * 6 + "</p>"
    slots = iter(range(100))
    parts = [slot % next(slots) for _ in range(top)]
    for _ in range(max(middle, 4)):
        parts.append(text)
        if middle > 0:
            parts.append(slot % next(slots))
            middle -= 1
    aside = "".join(slot % next(slots) for _ in range(side))
    return (f"<!doctype html><title>{name}</title><body style='font:16px sans-serif'><h1>{name}</h1>"
            f"<aside style='float:right;width:300px'>{aside}</aside>{''.join(parts)}")


class Site:
    """Two addresses of the pages, which a browser treats as two sites. Counts what is sent."""

    def __init__(self):
        self.bytes = self.requests = 0
        self.lock = threading.Lock()
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                found = site.answer(self.path)
                kind, body = found if found else ("text/plain", b"not found")
                with site.lock:
                    site.bytes += len(body)
                    site.requests += 1
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        servers = [http.server.ThreadingHTTPServer((address, 0), Handler) for address in ("127.0.0.2", "127.0.0.3")]
        self.own, self.other = (f"http://{server.server_address[0]}:{server.server_address[1]}" for server in servers)
        for server in servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def answer(self, target):
        path, _, query = target.partition("?")
        name = path.strip("/")
        if name == "banner.svg":
            return "image/svg+xml", BANNER.encode()
        if name in ("ad.js", "bid.js", "ad.svg", "ad.html"):
            time.sleep(AD_DELAY_S)
        if name == "ad.js":
            script = ("{ const slot = document.currentScript.parentElement, more = document.createElement('script');"
                      f"more.src = '{self.other}/bid.js?{query}'; slot.append(more); }}")
            return "text/javascript", (script + "//" + "a" * SCRIPT_BYTES).encode()
        if name == "bid.js":
            script = ("{ const bid = document.currentScript, frame = document.createElement('iframe');"
                      f"frame.src = '{self.other}/ad.html?{query}'; frame.width = 600; frame.height = 90;"
                      "bid.parentElement.append(frame); }")
            return "text/javascript", (script + "//" + "b" * SCRIPT_BYTES).encode()
        if name == "ad.html":
            return "text/html", f"<body style=margin:0><img src='{self.other}/ad.svg?{query}'>".encode()
        if name == "ad.svg":
            return "image/svg+xml", (BANNER + "<!--" + "c" * PICTURE_BYTES + "-->").encode()
        if name.startswith("ads/") and name[4:] in AD_PAGES:
            return "text/html; charset=utf-8", ad_page(name[4:], self.other).encode()
        file = PAGES / f"{name}.html"
        if file.parent != PAGES or not file.is_file():
            return None
        return "text/html; charset=utf-8", file.read_text().replace("{other}", self.other).encode()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Service:
    """A grabd of its own, with its data in a temporary directory."""

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory()
        data = pathlib.Path(self.directory.name)
        os.chmod(data, 0o711)
        data = data / "data"
        (data / "lists").mkdir(parents=True)
        (data / "lists/ads.txt").write_text(ADS)
        os.chmod(data, 0o711)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        env = {**os.environ, "GRABD_DATA_DIR": str(data), "GRABD_HTTP__LISTEN": f"127.0.0.1:{port}",
               "GRABD_GRPC__LISTEN": f"127.0.0.1:{free_port()}", "GRABD_METRICS__LISTEN": f"127.0.0.1:{free_port()}",
               "GRABD_LIMITS__REQUESTS_PER_MINUTE": "6000",
               "GRABD_EGRESS__ALLOW_CIDRS": "127.0.0.2/32,127.0.0.3/32"}
        program = pathlib.Path(os.environ.get("GRABD", ROOT / "target/release/grabd")).resolve()
        if not program.is_file():
            sys.exit(f"{program} does not exist; build grabd, or name it in GRABD")
        self.log = open(data.parent / "log", "w+")
        self.process = subprocess.Popen([program, "serve"], env=env, cwd=data.parent, stdout=self.log, stderr=self.log)
        until = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/readyz", timeout=5).close()
                self.key = json.loads((data / "keys.json").read_text())["live_key"]
                return self
            except (OSError, ValueError):
                if self.process.poll() is not None or time.monotonic() > until:
                    self.process.kill()
                    self.log.seek(0)
                    sys.exit(f"{program} did not start:\n{self.log.read()[-3000:]}")
                time.sleep(0.1)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)
        self.log.close()
        self.directory.cleanup()

    def grab(self, options):
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/v1/grabs", json.dumps(options).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                grab = json.load(response)
        except urllib.error.HTTPError as error:
            sys.exit(f"{options}: {error.code} {error.read().decode()}")
        if grab["status"] != "done":
            sys.exit(f"{options}: {grab}")
        return grab

    def download(self, url):
        """The content of an image or a file, and its media type."""
        # The address has the service's host, which is not resolved here.
        with urllib.request.urlopen(self.url + "/" + url.split("/", 3)[3], timeout=30) as response:
            return response.read(), response.headers["Content-Type"]


# Of each picture: the title, the page, the options without it, and with it, and which file is shown.
SMALL = {"width": 800, "height": 520, "fit_width": 420, "format": "webp", "quality": 60}
TALL = {**SMALL, "full_page": True, "fit_width": 260}
CARD = {"selector": "article:nth-child(4)", "format": "webp", "quality": 60}
PAIRS = [
    ("color_scheme", "visitor", SMALL, {"color_scheme": "dark"}, None),
    ("reduced_motion", "visitor", SMALL, {"reduced_motion": True}, None),
    ("media", "visitor", SMALL, {"media": "print"}, None),
    ("device", "visitor", {"fit_width": 420, "fit_height": 420, "format": "webp", "quality": 60}, {"device": "phone"},
     None),
    ("locale", "visitor", SMALL, {"locale": "de-AT", "timezone": "Asia/Tokyo"}, None),
    ("scale", "badge", {"width": 320, "height": 240, "format": "webp"}, {"scale": 2}, None),
    ("block-ads", "news", {**SMALL, "remove": ["#cookies", ".chat-widget"]}, {"block": ["ads"]}, None),
    ("block-cookie_banners", "news", SMALL, {"block": ["cookie_banners"]}, None),
    ("hide", "news", {**SMALL, "remove": ["#cookies"]}, {"hide": [".chat-widget"]}, None),
    ("remove", "news", TALL, {"remove": ["#cookies", ".chat-widget", ".ad-slot", "#newsletter"]}, None),
    ("mask", "shop", SMALL, {"mask": ["article h2"]}, None),
    ("highlight", "shop", SMALL, {"highlight": [{"selector": "article h2", "label": "Name", "color": "blue"}]}, None),
    ("css", "news", {**SMALL, "remove": ["#cookies"]}, {"css": "main { columns: 2; font-size: 14px }"}, None),
    ("click", "news", {**TALL, "remove": ["#cookies"]}, {"click": ["summary"]}, None),
    ("freeze", "shop", {**SMALL, "delay_ms": 1200}, {"freeze": True}, None),
    ("transparent", "badge", {"width": 400, "height": 240, "format": "webp"}, {"transparent": True}, None),
    ("clip", "shop", SMALL, {"clip": {"x": 240, "y": 60, "width": 520, "height": 240}}, None),
    ("padding", "shop", CARD, {"padding": 24}, None),
    ("full_page", "shop", {**SMALL, "fit_width": 260}, {"full_page": True}, None),
    ("max_height", "shop", TALL, {"max_height": 600}, None),
    ("fit_width", "shop", {"width": 800, "height": 520, "format": "webp", "quality": 60}, {"fit_width": 200}, None),
    ("slice_height", "shop", {**TALL, "format": "jpeg"}, {"slice_height": 256}, "slice"),
    ("thumbnail", "shop", SMALL, {"thumbnail": {"width": 160, "height": 120, "fit": "cover"}}, "thumbnail"),
    ("also-marks", "shop", {"width": 400, "height": 260, "format": "png"}, {"also": ["marks"]}, "marks"),
    ("viewports", "visitor", SMALL, {"viewports": [{"width": 320, "height": 568}]}, "viewport"),
    ("compare_to", "shop?price=40", {**SMALL, "fit_width": 300}, {}, "difference"),
    ("html", None, SMALL, {"html": "<body style='font:32px serif;padding:40px'><h1>Invoice 42</h1><p>Two boats"}, None),
]


def write(site, service):
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.glob("*.*"):
        if old.suffix != ".md":
            old.unlink()
    rows = []
    for name, page, plain, change, kind in PAIRS:
        target = {} if page is None else {"url": f"{site.own}/{page}"}
        before = service.grab({**target, **plain}) if page else None
        if kind == "difference":
            target = {"url": f"{site.own}/shop?price=35"}
            change = {"compare_to": before["id"]}
        after = service.grab({**target, **plain, **change})
        files = [file for file in after.get("files", []) if file["kind"] == kind]
        shown = [after["image_url"]] if kind is None else [file["url"] for file in files[:3]]
        if not shown:
            sys.exit(f"{name}: no file of the kind {kind}")
        cells = [save(service, f"{name}-before", before["image_url"]) if before else ""]
        cells.append(" ".join(save(service, f"{name}-after{at or ''}", url) for at, url in enumerate(shown)))
        shown_change = {"compare_to": "…"} if kind == "difference" else change
        options = json.dumps(shown_change, ensure_ascii=False)[1:-1].replace("|", "\\|")
        rows.append(f"| `{options}` | {cells[0]} | {cells[1]} |")
        print(name, flush=True)
    total = sum(file.stat().st_size for file in OUT.iterdir())
    if total > MAX_FOLDER_BYTES:
        sys.exit(f"docs/pictures has {total} bytes, at most {MAX_FOLDER_BYTES} are allowed")
    (OUT / "README.md").write_text(README + "\n".join(rows) + "\n")


def save(service, name, url):
    body, kind = service.download(url)
    if len(body) > MAX_PICTURE_BYTES:
        sys.exit(f"{name} has {len(body)} bytes, at most {MAX_PICTURE_BYTES} are allowed")
    file = OUT / f"{name}.{kind.split('/')[1]}"
    file.write_bytes(body)
    return f"![{name.replace('-', ' ')}]({file.name})"


README = """# What the capture options do

Each row has the picture without the option and the one with it. `tests/site/options/capture.py` wrote this page: every
picture is a capture of a page of that directory by a running grabd.
[OPTIONS.md](../OPTIONS.md) describes the options, and [PICTURES.md](../PICTURES.md) compares captures of pages that are
hard to capture. [What the members of `pdf` do](pdf/README.md) has pictures of PDFs.

| Option | Without | With |
| --- | --- | --- |
"""


def measure_ads(site, service, rounds):
    print("| Page | ms without | ms with | KB without | KB with | requests without | requests with |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    seen = {(name, blocks): [] for name in AD_PAGES for blocks in (False, True)}
    for at in range(rounds + 1):
        for name in AD_PAGES:
            for blocks in (False, True):
                site.bytes = site.requests = 0
                options = {"url": f"{site.own}/ads/{name}", **({"block": ["ads"]} if blocks else {})}
                grab = service.grab(options)
                if at:  # The first round is not counted.
                    seen[name, blocks].append((grab["execution_ms"], site.bytes // 1000, site.requests))
    medians = {of: [statistics.median(column) for column in zip(*runs)] for of, runs in seen.items()}
    for name in AD_PAGES:
        pairs = zip(medians[name, False], medians[name, True])
        print(f"| {name} | " + " | ".join(f"{without:.0f} | {with_:.0f}" for without, with_ in pairs) + " |")
    totals = [[sum(medians[name, blocks][at] for name in AD_PAGES) for blocks in (False, True)] for at in range(3)]
    print("| all | " + " | ".join(f"{without:.0f} | {with_:.0f}" for without, with_ in totals) + " |")


def main():
    site = Site()
    with Service() as service:
        if sys.argv[1:2] == ["ads"]:
            measure_ads(site, service, int(sys.argv[2]) if len(sys.argv) > 2 else 5)
        elif not sys.argv[1:]:
            write(site, service)
        else:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
