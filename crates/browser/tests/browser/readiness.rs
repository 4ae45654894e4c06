//! When the picture is taken: not before the page is ready, and not long after.

use std::time::{Duration, Instant};

use grabd_domain::capture::CaptureRequest;
use grabd_domain::grabs::SettledBy;

use crate::rig::{Rig, request, task};
use crate::site::{Reply, Site, answer, html, svg};
use grabd_domain::render::Renderer;

const IMAGE: &str = "position:absolute;left:100px;top:100px;width:100px;height:100px";

fn fetches_at(load: &str) -> Reply {
    html(format!(
        "<body><script>{load} fetch('/data').then((r) => r.text()).then((c) => {{
            const i = new Image(); i.style = '{IMAGE}'; i.src = c; document.body.append(i) }})</script>"
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_page_still_brings_in_is_on_the_picture() {
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
        // Changed while the picture that might do is being taken: by a script, in a shadow tree, on a canvas.
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
        // The box is as wide as its text: with the web font the ruler at 400 px is inside it.
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
        let picture = rig.grab(&site.url(path)).await;
        assert_eq!(picture.colour(150, 150), "lime", "{path}");
        assert_eq!(picture.facts.settled_by, Some(SettledBy::Quiet), "{path}");
    }
    let (font, plain) = (rig.grab(&site.url("/font")).await, rig.grab(&site.url("/plain")).await);
    assert_eq!((font.colour(500, 60), plain.colour(500, 60)), ("white", "lime"), "the web font is narrower");
    assert_eq!(font.colour(300, 60), "lime");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_still_page_waits_for_nothing_and_a_restless_one_not_for_ever() {
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
        ("/socket", SettledBy::Quiet, 0, 2_000),
        ("/polling", SettledBy::Quiet, 800, 4_000),
        ("/restless", SettledBy::Deadline, 1_900, 6_000),
    ] {
        let started = Instant::now();
        let picture = rig.grab(&site.url(path)).await;
        let took = started.elapsed().as_millis();
        assert!((least..most).contains(&took), "{path}: {took} ms");
        assert_eq!((picture.facts.settled_by, picture.colour(900, 600)), (Some(by), "lime"), "{path}");
    }
    // The load event never comes: half of the budget is for it.
    let mut endless = task(request(&site.url("/endless")));
    endless.budget = Duration::from_secs(4);
    let capture = rig.chromium.render(endless).await.unwrap();
    assert_eq!(capture.facts.settled_by, Some(SettledBy::Deadline));
    assert_eq!(crate::rig::Picture::from(capture).colour(900, 600), "lime");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delay_is_waited_for_and_a_page_that_moves_on_meanwhile_is_followed() {
    let pages = [
        ("/", html("<body><script>setTimeout(() => document.body.style.background = 'lime', 600)</script>")),
        (
            "/moves",
            html("<body style='background:red'><script>setTimeout(() => location.replace('/end'), 500)</script>"),
        ),
        ("/end", html("<body style='background:lime'>")),
    ];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "white");
    for path in ["/", "/moves"] {
        let delayed = CaptureRequest { delay_ms: Some(1_000), ..request(&site.url(path)) };
        assert_eq!(rig.picture(delayed).await.colour(600, 400), "lime", "{path}");
    }
    rig.chromium.shutdown().await;
}
