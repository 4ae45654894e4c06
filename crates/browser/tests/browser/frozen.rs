//! Pages that move by script, and look the same in every capture with `freeze_all`.

use grabd_domain::capture::CaptureRequest;

use crate::behaviour::{GIF, WEBM};
use crate::rig::{Rig, request};
use crate::site::{Site, answer, html, svg};

fn page(body: &str) -> String {
    format!(
        "<!doctype html><html lang=en><title>moving</title><body style='margin:0;background:white;font:20px monospace'>{body}"
    )
}

fn frozen(url: &str) -> CaptureRequest {
    CaptureRequest { freeze_all: Some(true), ..request(url) }
}

/// A canvas on which each frame draws a box at a random place.
const CANVAS: &str = "<canvas id=c width=800 height=400></canvas><script>
    const context = c.getContext('2d');
    const draw = (time) => {
        context.fillStyle = `hsl(${Math.random() * 360} 90% 50%)`;
        context.fillRect(Math.random() * 700, Math.random() * 300, 60 + time % 40, 60);
        requestAnimationFrame(draw);
    };
    requestAnimationFrame(draw)</script>";

const TICKER: &str = "<p id=when><p id=id><p id=price><script>
    setInterval(() => {
        when.textContent = `${new Date().toISOString()} ${Date()} ${performance.now()} ${performance.timeOrigin}`;
        id.textContent = `${crypto.randomUUID()} ${crypto.getRandomValues(new Uint32Array(2))}`;
        price.textContent = `${(100 + Math.random()).toFixed(6)} ${new Intl.DateTimeFormat('en', { timeStyle: 'medium' }).format()}`;
    }, 70)</script>";

const STYLES: &str = "<style>@keyframes turn { to { transform: rotate(360deg); background: red } }
    div { width: 100px; height: 100px; margin: 60px; background: blue; animation: turn 0.9s infinite linear }</style><div></div>";

const SMIL: &str = "<svg width=400 height=200><circle cy=100 r=30 fill=green>
    <animate attributeName=cx values='30;370;30' dur=1.3s repeatCount=indefinite /></circle></svg>";

const WORKER: &str = "<p id=count>0<script>
    const source = 'let n = 0; setInterval(() => postMessage([++n, Math.random(), Date.now()]), 100)';
    const worker = new Worker(URL.createObjectURL(new Blob([source])));
    worker.onmessage = ({ data }) => {
        count.textContent = data.join(' ');
        document.body.style.background = data[0] === 65 ? 'lime' : 'red';
    }</script>";

const CAROUSEL: &str = "<style>#row { display: flex; width: 3000px; transition: transform 0.7s ease }
    #row > div { width: 600px; height: 300px }</style><div style='width:600px;overflow:hidden'><div id=row>
    <div style='background:red'></div><div style='background:lime'></div><div style='background:blue'></div></div></div>
    <script>let slide = 0;
    const next = () => {
        slide = (slide + 1) % 3;
        row.style.transform = `translateX(${slide * -600}px)`;
    };
    row.addEventListener('transitionend', () => setTimeout(next, 300));
    setInterval(next, 900)</script>";

const CHART: &str = "<canvas id=c width=800 height=400></canvas><script>
    const context = c.getContext('2d');
    const values = Array.from({ length: 12 }, () => 50 + Math.random() * 300);
    fetch('/data').then((answer) => answer.json()).then(({ factor }) => {
        const began = Date.now();
        const draw = () => {
            const eased = 1 - (1 - Math.min(1, (Date.now() - began) / 800)) ** 3;
            context.clearRect(0, 0, 800, 400);
            values.forEach((value, at) => context.fillRect(at * 60, 400 - value * eased * factor, 40, 400));
            if (eased < 1) setTimeout(draw, 7);
            else document.body.style.background = 'lime';
        };
        draw();
    })</script>";

const WEBGL: &str = "<p>WebGL<canvas id=c width=400 height=300></canvas><script>
    const gl = c.getContext('webgl');
    const draw = (time) => {
        gl?.clearColor(Math.random(), (time / 1000) % 1, 0.5, 1);
        gl?.clear(gl.COLOR_BUFFER_BIT);
        requestAnimationFrame(draw);
    };
    requestAnimationFrame(draw)</script>";

/// Captures each page several times. All captures of a page must have the same bytes.
async fn check_equal_captures(pages: &[(&'static str, &str)]) {
    let data = answer("200 OK", "Content-Type: application/json", "{\"factor\": 1}").after(250);
    let replies = pages.iter().map(|(path, body)| (*path, html(page(body))));
    let site = Site::start(2, replies.chain([("/data", data)])).await;
    let rig = Rig::start().await;
    for (path, _) in pages {
        let first = rig.capture(frozen(&site.url(path))).await;
        assert_eq!(first.metadata.findings.blank, Some(false), "{path}");
        // Waits of different lengths must make no difference.
        for wait_until in ["auto", "load", "idle"] {
            let asked = CaptureRequest { wait_until: Some(wait_until.to_owned()), ..frozen(&site.url(path)) };
            let again = rig.capture(asked).await;
            assert!(again.capture.image == first.capture.image, "{path}, {wait_until}");
        }
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_move_by_script_give_the_same_bytes_in_every_capture() {
    let pages =
        [("/canvas", CANVAS), ("/ticker", TICKER), ("/worker", WORKER), ("/carousel", CAROUSEL), ("/chart", CHART)];
    check_equal_captures(&pages).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_move_by_themselves_give_the_same_bytes_in_every_capture() {
    let image = format!("<img src='data:image/gif;base64,{GIF}' width=200 height=200>");
    let video = format!("<video src='data:video/webm;base64,{WEBM}' autoplay muted loop width=200 height=200></video>");
    let pages =
        [("/styles", STYLES), ("/smil", SMIL), ("/gif", image.as_str()), ("/webgl", WEBGL), ("/video", video.as_str())];
    check_equal_captures(&pages).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn canvas_is_not_stopped_by_freeze_alone() {
    let site = Site::start(2, [("/", html(page(CANVAS)))]).await;
    let rig = Rig::start().await;
    let moving = || CaptureRequest { freeze: Some(true), ..request(&site.url("/")) };
    assert!(rig.capture(moving()).await.capture.image != rig.capture(moving()).await.capture.image);
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_stops_at_the_same_time_in_the_page_its_frames_and_its_workers() {
    let ticks = "<script>let n = 0; setInterval(() => {
            n += 1;
            const isAt = n === 65 && Date.now() === 1767268806500 && performance.now() === 6500;
            document.body.style.background = isAt ? 'lime' : 'red';
        }, 100)</script>";
    let observer = "<p id=seen>x<script>let n = 0; new IntersectionObserver((_, observer) => {
            observer.disconnect();
            setInterval(() => document.body.style.background = ++n === 65 ? 'lime' : 'red', 100);
        }).observe(seen)</script>";
    let frame = "<iframe src=/ticks style='border:0;width:100%;height:700px'></iframe>";
    let replies = [
        ("/ticks", html(page(ticks))),
        ("/frame", html(page(frame))),
        ("/worker", html(page(WORKER))),
        // Observers report with a frame of the browser, for which the clock waits.
        ("/observer", html(page(observer))),
        // The clock stands still while something loads.
        ("/slow", html(page(&format!("{ticks}<img src=/late.svg style='position:absolute;top:600px'>")))),
        ("/late.svg", svg("blue").after(1200)),
    ];
    let site = Site::start(2, replies).await;
    let rig = Rig::start().await;
    for path in ["/ticks", "/frame", "/worker", "/observer", "/slow"] {
        let image = rig.capture(frozen(&site.url(path))).await;
        assert_eq!(image.colour(600, 400), "lime", "{path}");
        assert_ne!(rig.grab(&site.url(path)).await.colour(600, 400), "lime", "{path} without the option");
    }
    // The delay is time of the page.
    let longer =
        format!("{}<script>setTimeout(() => document.body.style.background = 'blue', 7000)</script>", page(""));
    let site = Site::start(2, [("/", html(longer))]).await;
    let delayed = |delay_ms| CaptureRequest { delay_ms: Some(delay_ms), ..frozen(&site.url("/")) };
    assert_eq!(rig.capture(delayed(0)).await.colour(600, 400), "white");
    assert_eq!(rig.capture(delayed(1000)).await.colour(600, 400), "blue");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_with_a_fixed_clock_still_react_and_loops_that_wait_for_it_end() {
    let reveal = "<div style='height:2400px'></div><div id=last style='height:200px;background:red'></div><script>
        new IntersectionObserver(([entry], observer) => {
            if (!entry.isIntersecting) return;
            observer.disconnect();
            const began = performance.now();
            const fade = () => {
                if (performance.now() - began < 600) return requestAnimationFrame(fade);
                last.style.background = 'lime';
            };
            requestAnimationFrame(fade);
        }).observe(last)</script>";
    let busy = "<script>addEventListener('load', () => {
            const began = Date.now();
            while (Date.now() - began < 300);
            document.body.style.background = 'lime';
        })</script>";
    let click = "<button id=b>go</button><script>b.onclick = () => {
            setTimeout(() => document.body.style.background = 'lime', 700);
        }</script>";
    let cookie = "<script>setTimeout(() => {
            document.cookie = `a=1; Expires=${new Date(Date.now() + 60_000).toUTCString()}; Path=/`;
            document.body.style.background = document.cookie === 'a=1' ? 'lime' : 'red';
        }, 50)</script>";
    // Longer than the clock waits for what is loading.
    let late = "<script>fetch('/data').then(() => {
            window.isLate = true;
            document.body.style.background = 'lime';
        })</script>";
    let replies = [
        ("/reveal", html(page(reveal))),
        ("/busy", html(page(busy))),
        ("/click", html(page(click))),
        ("/cookie", html(page(cookie))),
        ("/late", html(page(late))),
        ("/data", html("x").after(4000)),
    ];
    let site = Site::start(2, replies).await;
    let rig = Rig::start().await;
    let whole = rig.capture(CaptureRequest { full_page: Some(true), ..frozen(&site.url("/reveal")) }).await;
    assert_eq!((whole.size(), whole.colour(600, 2500)), ((1280, 2600), "lime"));
    for path in ["/busy", "/cookie"] {
        assert_eq!(rig.capture(frozen(&site.url(path))).await.colour(600, 400), "lime", "{path}");
    }
    let clicked = CaptureRequest { click: Some(vec!["#b".into()]), ..frozen(&site.url("/click")) };
    assert_eq!(rig.capture(clicked).await.colour(600, 400), "lime");
    let waits = "await new Promise((done) => setTimeout(done, 1500)); document.body.style.background = 'lime'";
    let loaded = CaptureRequest { wait_for_expression: Some("window.isLate".into()), ..frozen(&site.url("/late")) };
    assert_eq!(rig.capture(loaded).await.colour(600, 400), "lime");
    let scripted = CaptureRequest { script: Some(waits.into()), ..frozen(&site.url("/click")) };
    assert_eq!(rig.capture(scripted).await.colour(600, 400), "lime");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_has_the_timers_of_the_clock_and_gets_no_messages_but_those_of_the_page() {
    // The browser adds timers to a worker when its script begins, which is after the clock.
    let worker = page(
        "<script>
        const source = `let [turns, received] = [0, []];
            onmessage = ({ data }) => received.push(data);
            clearTimeout(setTimeout(() => received.push('cancelled'), 200));
            const first = setInterval(() => { clearInterval(first); turns += 100 }, 100);
            setInterval(() => postMessage([turns += 1, Date.now(), received.join()].join(' ')), 1000)`;
        const worker = new Worker(URL.createObjectURL(new Blob([source])));
        worker.postMessage('page');
        worker.onmessage = ({ data }) => {
            document.body.style.background = data === '106 1767268806000 page' ? 'lime' : 'red';
        }</script>",
    );
    let site = Site::start(2, [("/", html(worker))]).await;
    let rig = Rig::start().await;
    assert_eq!(rig.capture(frozen(&site.url("/"))).await.colour(600, 400), "lime");
    rig.chromium.shutdown().await;
}
