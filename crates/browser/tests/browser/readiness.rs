//! When the image is taken: not before the page has settled, and not long after.

use std::time::{Duration, Instant};

use grabd_domain::capture::CaptureRequest;
use grabd_domain::grabs::SettledBy;

use crate::rig::{DecodedImage, Rig, request, task};
use crate::site::{Reply, Site, answer, html, svg};
use grabd_domain::render::{RenderTask, Renderer};

const IMAGE: &str = "position:absolute;left:100px;top:100px;width:100px;height:100px";

fn fetches_at(load: &str) -> Reply {
    html(format!(
        "<body><script>{load} fetch('/data').then((r) => r.text()).then((c) => {{
            const i = new Image(); i.style = '{IMAGE}'; i.src = c; document.body.append(i) }})</script>"
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn late_content_is_in_the_image() {
    let font = std::fs::read("/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf").unwrap();
    let pages = [
        ("/slow", html(format!("<img src=/slow.svg style='{IMAGE}'>"))),
        ("/styled", html("<link rel=stylesheet href=/slow.css><body>")),
        ("/lazy", html(format!("<img loading=lazy src=/slow.svg style='{IMAGE}'>"))),
        ("/late", html(format!("<body><script>onload = () => {{ const i = new Image(); i.style = '{IMAGE}'; i.src = '/slow.svg';
            document.body.append(i) }}</script>"))),
        ("/fetch", fetches_at("")),
        ("/chain", fetches_at("await null;").clone()),
        ("/background", html(format!("<div id=d style='{IMAGE}'></div><script>onload = () => setTimeout(() => {{
            d.style.background = 'url(/slow.svg)' }}, 50)</script>"))),
        // Changed during the first screenshot: by a script, in a shadow tree, on a canvas.
        ("/changed", html(format!("<div id=d style='{IMAGE};background:red'></div><script>onload = () => setTimeout(() => {{
            d.style.background = 'lime' }}, 60)</script>"))),
        ("/shadow", html(format!("<div id=d></div><script>const r = d.attachShadow({{ mode: 'open' }});
            r.innerHTML = \"<div style='{IMAGE};background:red'></div>\"; onload = () => setTimeout(() => {{
            r.firstChild.style.background = 'lime' }}, 60)</script>"))),
        ("/canvas", html(format!("<canvas id=c style='{IMAGE}'></canvas><script>onload = () => setTimeout(() => {{
            const x = c.getContext('2d'); x.fillStyle = 'lime'; x.fillRect(0, 0, 999, 999) }}, 60)</script>"))),
        ("/slow.svg", svg("lime").after(400)),
        ("/slow.css", answer("200 OK", "Content-Type: text/css", "body{background:lime}").after(400)),
        ("/data", answer("200 OK", "Content-Type: text/plain", "/slow.svg").after(300)),
        // The box is as wide as its text. With the web font the ruler at 400 px is inside it.
        ("/font", html("<style>@font-face{font-family:w;src:url(/font.ttf)}
            span{font:100px w,monospace;background:lime;color:lime}</style><body style='margin:0'><span>iiiiiiiiii</span>")),
        ("/plain", html("<style>span{font:100px monospace;background:lime;color:lime}</style>
            <body style='margin:0'><span>iiiiiiiiii</span>")),
        ("/font.ttf", answer("200 OK", "Content-Type: font/ttf\r\nAccess-Control-Allow-Origin: *", font).after(300)),
    ];
    let pages: Vec<_> = pages
        .into_iter()
        .map(|(path, reply)| match path {
            "/chain" => (path, html("<body><script type=module>".to_owned() + "await new Promise((r) => setTimeout(r, 20));
                const c = await (await fetch('/data')).text(); const i = new Image(); i.src = c;
                i.style = 'position:absolute;left:100px;top:100px;width:100px;height:100px'; document.body.append(i)</script>")),
            _ => (path, reply),
        })
        .collect();
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    for path in
        ["/slow", "/styled", "/lazy", "/late", "/fetch", "/chain", "/background", "/changed", "/shadow", "/canvas"]
    {
        let image = rig.grab(&site.url(path)).await;
        assert_eq!(image.colour(150, 150), "lime", "{path}");
        assert_eq!(image.metadata.settled_by, Some(SettledBy::Quiet), "{path}");
    }
    let (font, plain) = (rig.grab(&site.url("/font")).await, rig.grab(&site.url("/plain")).await);
    assert_eq!((font.colour(500, 60), plain.colour(500, 60)), ("white", "lime"), "the web font is narrower");
    assert_eq!(font.colour(300, 60), "lime");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn document_that_comes_late_is_given_time_to_load() {
    let page = html(format!("<img src=/slow.svg style='{IMAGE}'>")).after(4300);
    let site = Site::start(2, [("/late", page), ("/slow.svg", svg("lime").after(400))]).await;
    let rig = Rig::start().await;
    let task = RenderTask { budget: Duration::from_secs(8), ..task(request(&site.url("/late"))) };
    let image = DecodedImage::from(rig.chromium.render(task).await.unwrap());
    assert_eq!((image.colour(150, 150), image.metadata.settled_by), ("lime", Some(SettledBy::Quiet)));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settled_page_is_captured_at_once_and_busy_page_at_the_deadline() {
    let pages = [
        ("/still", html("<body style='background:lime'><h1>x</h1>")),
        ("/endless", html("<body style='background:lime'><img src=/never.svg>")),
        ("/never.svg", Reply::Silence),
        (
            "/restless",
            html(
                "<body style='background:lime'><script>setInterval(() => fetch('/data?' + Math.random()), 20)</script>",
            ),
        ),
        ("/data", answer("200 OK", "", "x")),
        ("/polling", html("<body style='background:lime'><script>fetch('/never.svg')</script>")),
        ("/socket", html("<body style='background:lime'><script>new EventSource('/never.svg')</script>")),
    ];
    let site = Site::start(2, pages).await;
    let rig = Rig::with(&[2], |options| options.settle_budget = Duration::from_secs(2)).await;
    rig.grab(&site.url("/still")).await;
    for (path, by, least, most) in [
        ("/still", SettledBy::Quiet, 0, 2_000),
        // The first event may bring content.
        ("/socket", SettledBy::Deadline, 1_900, 6_000),
        ("/polling", SettledBy::Deadline, 800, 4_000),
        ("/restless", SettledBy::Deadline, 1_900, 6_000),
    ] {
        let started = Instant::now();
        let image = rig.grab(&site.url(path)).await;
        let took = started.elapsed().as_millis();
        assert!((least..most).contains(&took), "{path}: {took} ms");
        assert_eq!((image.metadata.settled_by, image.colour(900, 600)), (Some(by), "lime"), "{path}");
    }
    // The load event never fires. Half of the budget is reserved for it.
    let mut endless = task(request(&site.url("/endless")));
    endless.budget = Duration::from_secs(4);
    let capture = rig.chromium.render(endless).await.unwrap();
    assert_eq!(capture.metadata.settled_by, Some(SettledBy::Deadline));
    assert_eq!(crate::rig::DecodedImage::from(capture).colour(900, 600), "lime");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn delay_is_waited_for_and_navigation_during_it_is_followed() {
    let pages = [
        ("/", html("<body><script>setTimeout(() => document.body.style.background = 'lime', 8500)</script>")),
        (
            "/moves",
            html("<body style='background:red'><script>setTimeout(() => location.replace('/end'), 8500)</script>"),
        ),
        ("/end", html("<body style='background:lime'>")),
    ];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "white");
    for path in ["/", "/moves"] {
        let delayed = CaptureRequest { delay_ms: Some(9_000), ..request(&site.url(path)) };
        assert_eq!(rig.capture(delayed).await.colour(600, 400), "lime", "{path}");
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn delayed_changes_are_captured_even_if_the_page_polls_its_clock() {
    let pages = [
        (
            "/later",
            html(
                "<body><script>
                const began = performance.now();
                const step = (at) => at - began < 700 ? requestAnimationFrame(step) : document.body.style.background = 'lime';
                setTimeout(() => requestAnimationFrame(step), 200)</script>",
            ),
        ),
        (
            "/waits",
            html(
                "<body><script>setTimeout(() => {
                const end = Date.now() + 300;
                while (Date.now() < end);
                document.body.style.background = 'lime' }, 300)</script><img src=/late.svg>",
            ),
        ),
        ("/late.svg", answer("200 OK", "Content-Type: image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'/>")),
    ];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    assert_eq!(rig.grab(&site.url("/later")).await.colour(600, 400), "lime");
    assert_eq!(site.hits("/later"), 1);
    // Its virtual time advances only while its process is idle. It is captured a second time, in real time.
    let delayed = CaptureRequest { delay_ms: Some(1_000), ..request(&site.url("/waits")) };
    assert_eq!(rig.capture(delayed).await.colour(600, 400), "lime");
    assert_eq!(site.hits("/waits"), 2);
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn smooth_scrolling_is_waited_for() {
    let chapters =
        |id: &str, colour: &str| format!("<section id={id} style='height:400px;background:{colour}'></section>");
    let all =
        format!("{}{}{}", chapters("a", "red").repeat(12), chapters("last", "lime"), chapters("b", "red").repeat(4));
    let site = Site::start(
        2,
        [
            (
                "/page",
                html(format!(
                    "<style>html{{scroll-behavior:smooth}}body{{margin:0}}</style><body>{all}<script>
                    onload = () => setTimeout(() => last.scrollIntoView(), 200)</script>"
                )),
            ),
            (
                "/box",
                html(format!(
                    "<body style='margin:0'><div id=d style='height:600px;overflow:auto'>{all}</div><script>
                    onload = () => setTimeout(() => d.scrollTo({{ top: 4800, behavior: 'smooth' }}), 200)</script>"
                )),
            ),
        ],
    )
    .await;
    let rig = Rig::start().await;
    for path in ["/page", "/box"] {
        let image = rig.grab(&site.url(path)).await;
        assert_eq!(
            (image.colour(640, 3), image.colour(640, 397), image.colour(640, 403)),
            ("lime", "lime", "red"),
            "{path}"
        );
    }
    rig.chromium.shutdown().await;
}
