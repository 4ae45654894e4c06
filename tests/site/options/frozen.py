#!/usr/bin/env python3
"""Captures moving pages again and again, and counts the different images.

`tests/site/options/frozen.py [ROUNDS [PLAIN]]` captures each page ROUNDS times with `freeze_all` (50 when absent), and
PLAIN times without it (10), and prints a table. It needs a built grabd, as capture.py does.
"""

import concurrent.futures
import hashlib
import http.server
import sys
import threading

import capture

DIRECTORY = capture.ROOT / "tests/site/hard/ready"
PAGES = {"endless-canvas": "particles on a canvas, for ever", "clock-ticking": "a clock that ticks each second",
         "canvas-frames-60": "a chart that grows in 60 frames", "endless-decoration": "endless animations of styles",
         "entrance-raf-tween": "a tween by frames", "smil-finite": "an animation of SVG",
         "typed-text": "a text that is typed by a timer", "updates-300": "values that a timer replaces",
         "count-up": "numbers that count up", "steps-by-frame": "a layout that changes in each frame"}
AT_ONCE = 2


class Pages(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *args):
        super().__init__(*args, directory=str(DIRECTORY))

    def log_message(self, *_):
        pass


def digest(service, url, options):
    grab = service.grab({"url": url, "width": 800, "height": 500, **options})
    return hashlib.sha256(service.download(grab["image_url"])[0]).hexdigest()


def main():
    counts = [int(value) for value in sys.argv[1:]] + [50, 10][len(sys.argv) - 1:]
    server = http.server.ThreadingHTTPServer(("127.0.0.2", 0), Pages)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"| Page | Images in {counts[0]} captures with `freeze_all` | Images in {counts[1]} captures without |")
    print("| --- | --- | --- |")
    with capture.Service() as service, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for name, about in PAGES.items():
            url = f"http://127.0.0.2:{server.server_address[1]}/{name}.html"
            seen = [len(set(pool.map(lambda _, given=options: digest(service, url, given), range(count))))
                    for options, count in zip(({"freeze_all": True}, {}), counts)]
            print(f"| {about} | {seen[0]} | {seen[1]} |", flush=True)


if __name__ == "__main__":
    main()
