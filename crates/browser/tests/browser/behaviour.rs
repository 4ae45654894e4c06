//! Options about the behaviour of the page, what is waited for, and the part and the size of the image.

use std::time::Duration;

use grabd_domain::capture::{CaptureRequest, Rectangle};
use grabd_domain::grabs::FailureReason::{RenderBlocked, RenderFailed};
use grabd_domain::grabs::{OpenGraph, PageInfo, SettledBy};

use crate::rig::{Rig, request};
use crate::site::{Reply, Site, answer, html, svg};

/// A looping animation of a red and a blue frame, 8 by 8 pixels.
pub(crate) const GIF: &str = "R0lGODlhCAAIAIAAAP8AAAAA/yH/C05FVFNDQVBFMi4wAwEAAAAh+QQACgAAACwAAAAACAAIAAACMQRBEARBEARBEARBEARBEARBEARBEARBEARBEARBEARBEARBEARBEARBEARBEARBEAUAIfkEAAoAAAAsAAAAAAgACAAAAjEMwzAMwzAMwzAMwzAMwzAMwzAMwzAMwzAMwzAMwzAMwzAMwzAMwzAMwzAMwzAMwzAFADs=";

/// A second of red, then blue, 32 by 32 pixels.
pub(crate) const WEBM: &str = "GkXfo59ChoEBQveBAULygQRC84EIQoKEd2VibUKHgQRChYECGFOAZwEAAAAAAAN+EU2bdLlNu4tTq4QVSalmU6yBbk27i1OrhBZUrmtTrIGTTb\
    uLU6uEH0O2dVOsgdRNu4xTq4QcU7trU6yCA2zsrgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAVSalmoCrX\
    sYMPQkBEiYRESCJOTYCGQ2hyb21lV0GGQ2hyb21lFlSua7yuuteBAXPFhysJrT3+xCeDgQFV7oEBhoVWX1ZQOOCdsIEguoEgU8CBAVWwkFWxgQ\
    FVuYECVbqBDVW7gQEfQ7Z1AQAAAAAAAozngQCg7aHAgQAAADADAJ0BKiAAIAAABwiFhYiZhIgBJBATrVAfwB/QEELJdIOA/v7rvL/5T2OK+j/y\
    n7//k92eNKaJf/k4AHWhqKam7oEBpaFQAgCdASogACAAAAcIhYWImYSIASQQADyHnk4A/v+6gwCgt6GWgQBkANEBAAAQCSAAwADCwX+gAEOAAH\
    WhmaaX7oEBpZLRAQAAEAkgAMAAwsF/oABDgAD7gQCgt6GWgQDIANEBAAAQCSAAwADCwX+gAEOAAHWhmaaX7oEBpZLRAQAAEAkgAMAAwsF/oABD\
    gAD7gWSgQIOh4oEBLACRAwAAEAkgAMBADIiUh/AfsD+gP6A6H2ZM3k5sAIcA/vtol//3NoOXFCxX/+leuYZoylf7I6GZPa4UigVx97quVf9kdD\
    LrBMKRQKtGNsXBv/YnJK/VFCGtmjJcJ3gAdaGZppfugQGlktEBAAAQCSAAwADCwX+gAEOAAPuByKC4oZaBAZAA0QEAABAJIADAAMLBf6AAQ4AA\
    daGZppfugQGlktEBAAAQCSAAwADCwX+gAEOAAPuCASyguKGWgQH1ANEBAAAQCSAAwADCwX+gAEOAAHWhmaaX7oEBpZLRAQAAEAkgAMAAwsF/oA\
    BDgAD7ggGQoLihloECWADRAQAAEAkgAMAAwsF/oABDgAB1oZmml+6BAaWS0QEAABAJIADAAMLBf6AAQ4AA+4IB9aC4oZaBArwA0QEAABAJIKMA\
    AwsF/oABDgAAdaGZppfugQGlktEBAAAQCSCjAAMLBf6AAQ4AAPuCAliguKGWgQMgANEBAAAQCSAAwADCwX+gAEOAAHWhmaaX7oEBpZLRAQAAEA\
    kgAMAAwsF/oABDgAD7ggK8HFO7a427i7OBALeG94EB8YHU";

#[tokio::test(flavor = "multi_thread")]
async fn page_without_javascript_is_still_captured_in_every_way() {
    let page = "<!doctype html><body style='margin:0;background:lime;height:2000px'><noscript><div id=no
        style='position:absolute;top:0;left:0;width:200px;height:100px;background:blue'></div></noscript>
        <img loading=lazy src=/red.svg style='position:absolute;top:1800px;left:0'>
        <script src=/script.js></script><script>document.body.style.background = 'red'</script>";
    let script = answer("200 OK", "Content-Type: text/javascript", "document.body.style.background = 'red'");
    let site = Site::start(2, [("/", html(page)), ("/script.js", script), ("/red.svg", svg("red"))]).await;
    let rig = Rig::start().await;
    let without = || CaptureRequest { javascript: Some(false), ..request(&site.url("/")) };
    assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "red");
    let viewport = rig.capture(without()).await;
    assert_eq!((viewport.colour(600, 400), viewport.colour(100, 50)), ("lime", "blue"));
    let whole = rig.capture(CaptureRequest { full_page: Some(true), ..without() }).await;
    assert_eq!((whole.size(), whole.colour(50, 1850), whole.colour(600, 1900)), ((1280, 2000), "red", "lime"));
    let element = CaptureRequest { selector: Some("#no".into()), wait_for: Some("#no".into()), ..without() };
    assert_eq!(rig.capture(element).await.size(), (200, 100));
    rig.chromium.shutdown().await;
}

/// Blue when it is parsed, lime when it is loaded, yellow when its data has arrived.
const STAGES: &str = "<!doctype html><body style='margin:0;background:red'><img src=/slow.svg width=9 height=9><script>
    const paint = (colour) => { document.body.style.background = colour };
    addEventListener('DOMContentLoaded', () => paint('blue'));
    addEventListener('load', () => { paint('lime');
        Promise.all(['a', 'b', 'c'].map((name) => fetch('/data?' + name))).then(() => paint('yellow')) })</script>";

#[tokio::test(flavor = "multi_thread")]
async fn capture_waits_for_the_requested_stage() {
    let pages = [("/", html(STAGES)), ("/slow.svg", svg("red").after(4000)), ("/data", html("x").after(3000))];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    for (stage, colour, settled_by) in [
        ("dom", "blue", SettledBy::Deadline),
        ("load", "lime", SettledBy::Deadline),
        ("idle", "yellow", SettledBy::Quiet),
    ] {
        let asked = CaptureRequest { wait_until: Some(stage.to_owned()), ..request(&site.url("/")) };
        let image = rig.capture(asked).await;
        assert_eq!((image.colour(600, 400), image.metadata.settled_by), (colour, Some(settled_by)), "{stage}");
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn capture_ends_within_its_time_limit() {
    let page = "<!doctype html><body style='margin:0;background:lime'><img src=/silence>";
    let pages = [("/", html(page)), ("/silence", Reply::Silence)];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    let within = |path: &str| CaptureRequest { timeout_ms: Some(4000), ..request(&site.url(path)) };
    let image = rig.capture(within("/")).await;
    assert!(image.capture.execution_ms <= 4000, "{}", image.capture.execution_ms);
    assert_eq!((image.colour(600, 400), image.metadata.settled_by), ("lime", Some(SettledBy::Deadline)));
    let (failure, _) = rig.fails(within("/silence")).await;
    assert!(failure.message.contains("did not answer in time"), "{failure:?}");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statuses_fail_or_are_captured_as_requested() {
    let page = "<!doctype html><body style='background:lime'>";
    let status = |line: &str| answer(line, "Content-Type: text/html", page);
    let challenge = answer("403 Forbidden", "Content-Type: text/html\r\nCF-Mitigated: challenge", page);
    let pages = [
        ("/404", status("404 Not Found")),
        ("/403", status("403 Forbidden")),
        ("/503", status("503 Service Unavailable")),
        ("/401", answer("401 Unauthorized", "Content-Type: text/html\r\nWWW-Authenticate: Basic realm=x", page)),
        ("/challenge", challenge),
        ("/px", html("<div id=px-captcha>x</div>")),
    ];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    let asked = |path: &str, statuses: &[&str], allow_blocked: bool| CaptureRequest {
        fail_on_status: Some(statuses.iter().map(|status| (*status).to_owned()).collect()),
        allow_blocked: Some(allow_blocked),
        ..request(&site.url(path))
    };
    for path in ["/403", "/503", "/401", "/challenge"] {
        assert_eq!(rig.fails(asked(path, &[], false)).await.0.reason, RenderBlocked, "{path}");
        let image = rig.capture(asked(path, &["4xx", "5xx", "404"], true)).await;
        assert_eq!(image.colour(600, 400), "lime", "{path}");
    }
    assert_eq!(rig.fails(asked("/px", &[], false)).await.0.reason, RenderBlocked);
    assert_eq!(rig.capture(asked("/px", &[], true)).await.metadata.http_status, Some(200));
    assert_eq!(rig.capture(asked("/404", &["5xx", "410"], false)).await.metadata.http_status, Some(404));
    for (path, statuses) in [("/404", "4xx"), ("/404", "404"), ("/403", "403")] {
        let (failure, metadata) = rig.fails(asked(path, &[statuses], true)).await;
        assert_eq!((failure.reason, metadata.http_status), (RenderFailed, path[1..].parse().ok()));
        assert!(failure.message.contains("`fail_on_status`"), "{failure:?}");
    }
    rig.chromium.shutdown().await;
}

/// 3000 pixels high, with an element in each part, and a lazy image.
const PARTS: &str = "<!doctype html><body style='margin:0;background:white;height:3000px;position:relative'>
    <div id=b style='position:absolute;left:100px;top:1500px;width:200px;height:100px;background:blue'></div>
    <div style='position:absolute;left:0;top:2900px;width:1280px;height:100px;background:lime'></div>
    <div style='position:absolute;left:0;top:0;width:640px;height:360px;background:red'></div>
    <img loading=lazy src=/yellow.svg style='position:absolute;left:100px;top:2500px'>";

#[tokio::test(flavor = "multi_thread")]
async fn clip_is_the_part_of_the_page_that_was_asked_for() {
    let site = Site::start(2, [("/", html(PARTS)), ("/yellow.svg", svg("yellow").after(300))]).await;
    let rig = Rig::start().await;
    let asked = |x, y, width, height| CaptureRequest {
        clip: Some(Rectangle { x, y, width, height }),
        ..request(&site.url("/"))
    };
    let middle = rig.capture(asked(90, 1490, 220, 120)).await;
    assert_eq!((middle.size(), middle.metadata.truncated), ((220, 120), false));
    let colours = [(5, 5), (12, 12), (207, 107), (215, 115)].map(|(x, y)| middle.colour(x, y));
    assert_eq!(colours, ["white", "blue", "blue", "white"]);
    assert_eq!(rig.capture(asked(100, 2500, 100, 100)).await.colour(50, 50), "yellow", "a lazy image");
    let top = rig.capture(CaptureRequest { scale: Some(2.0), ..asked(0, 0, 10, 20) }).await;
    assert_eq!((top.size(), top.colour(10, 10)), ((20, 40), "red"));
    let edge = rig.capture(asked(1200, 2950, 300, 300)).await;
    assert_eq!((edge.size(), edge.colour(40, 40)), ((80, 50), "lime"), "the rest is beyond the page");
    for (x, y) in [(1280, 0), (0, 3000)] {
        let (failure, _) = rig.fails(asked(x, y, 10, 10)).await;
        assert_eq!(failure.reason, RenderFailed);
        assert!(failure.message.contains("outside the page, which has 1280 x 3000"), "{failure:?}");
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn image_is_scaled_down_to_fit_and_never_enlarged() {
    let site = Site::start(2, [("/", html(PARTS)), ("/yellow.svg", svg("yellow"))]).await;
    let rig = Rig::start().await;
    let asked =
        |fit_width, fit_height, path: &str| CaptureRequest { fit_width, fit_height, ..request(&site.url(path)) };
    let half = rig.capture(asked(Some(640), None, "/")).await;
    assert_eq!(half.size(), (640, 360));
    assert_eq!(
        [(5, 5), (315, 175), (325, 175), (315, 185)].map(|(x, y)| half.colour(x, y)),
        ["red", "red", "white", "white"]
    );
    assert_eq!(rig.capture(asked(Some(8000), Some(8000), "/")).await.size(), (1280, 720));
    assert_eq!(rig.capture(asked(Some(640), Some(72), "/")).await.size(), (128, 72));
    let scrolled = rig.capture(asked(Some(640), None, "/#b")).await;
    assert_eq!(
        (scrolled.size(), scrolled.colour(60, 10)),
        ((640, 360), "blue"),
        "the viewport, not the top of the page"
    );
    let whole = rig.capture(CaptureRequest { full_page: Some(true), ..asked(None, Some(300), "/") }).await;
    assert_eq!((whole.size(), whole.colour(60, 298)), ((128, 300), "lime"));
    let element = CaptureRequest { selector: Some("#b".to_owned()), ..asked(Some(50), None, "/") };
    let element = rig.capture(element).await;
    assert_eq!((element.size(), element.colour(25, 12)), ((50, 25), "blue"));
    let phone = CaptureRequest { device: Some("phone".to_owned()), ..asked(Some(390), None, "/") };
    let phone = rig.capture(phone).await;
    assert_eq!((phone.size(), phone.colour(5, 5), phone.colour(380, 5)), ((390, 844), "red", "white"));
    rig.chromium.shutdown().await;
}

const BUTTONS: &str = "<!doctype html><body style='margin:0;background:red'>
    <button id=ok style='display:none'>ok</button><a href=/next style='position:absolute;top:3000px'>next</a>
    <button id=under style='position:absolute;top:300px;left:0'>x</button>
    <div style='position:absolute;top:290px;left:0;width:200px;height:60px;background:blue'></div>
    <div id=host></div><script>
    document.querySelector('#host').attachShadow({ mode: 'open' }).innerHTML = '<button id=open>open</button>';
    const inner = document.querySelector('#host').shadowRoot.querySelector('button');
    inner.onclick = (event) => { ok.style.display = event.isTrusted ? 'block' : 'none' };
    ok.onclick = () => setTimeout(() => { document.body.style.background = 'lime' }, 300)</script>";

#[tokio::test(flavor = "multi_thread")]
async fn elements_are_clicked_in_order_and_across_pages() {
    let next = "<!doctype html><body style='margin:0;background:red'><button onclick=\"document.body.style.background =
        'yellow'\">go</button>";
    let site = Site::start(2, [("/", html(BUTTONS)), ("/next", html(next))]).await;
    let rig = Rig::with(&[2], |options| options.settle_budget = Duration::from_secs(2)).await;
    let asked = |selectors: &[&str]| CaptureRequest {
        click: Some(selectors.iter().map(|selector| (*selector).to_owned()).collect()),
        wait_for: Some("#host".to_owned()),
        ..request(&site.url("/"))
    };
    assert_eq!(rig.capture(asked(&["#open"])).await.colour(600, 400), "red");
    assert_eq!(rig.capture(asked(&["#open", "#ok"])).await.colour(600, 400), "lime");
    let image = rig.capture(asked(&["#open", "a", "button"])).await;
    assert_eq!(image.colour(600, 400), "yellow");
    assert_eq!(image.metadata.final_url.as_deref(), Some(&*site.url("/next")));
    for (selector, part) in [
        ("#ok", "`click` \"#ok\" matches nothing visible"),
        ("#none", "matches nothing visible"),
        ("#under", "another one covers"),
        ("a:", "is not a valid CSS selector"),
    ] {
        let (failure, _) = rig.fails(asked(&[selector])).await;
        assert_eq!(failure.reason, RenderFailed);
        assert!(failure.message.contains(part), "{selector}: {failure:?}");
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn script_runs_once_in_the_page_and_fails_the_capture_if_it_throws() {
    let page = "<!doctype html><body style='margin:0;background:red'><script>window.own = 'lime'</script>";
    let strict = answer("200 OK", "Content-Type: text/html\r\nContent-Security-Policy: script-src 'none'", page);
    let next = html("<!doctype html><body style='margin:0;background:lime'>");
    let site = Site::start(2, [("/", html(page)), ("/strict", strict), ("/next", next)]).await;
    let rig = Rig::start().await;
    let asked =
        |path: &str, script: &str| CaptureRequest { script: Some(script.to_owned()), ..request(&site.url(path)) };
    let waits = "await new Promise((done) => setTimeout(done, 1500)); document.body.style.background = own // the end";
    assert_eq!(rig.capture(asked("/", waits)).await.colour(600, 400), "lime");
    let paints = "document.body.style.background = 'lime'";
    assert_eq!(rig.capture(asked("/strict", paints)).await.colour(600, 400), "lime");
    assert_eq!(rig.capture(asked("/", "location.href = '/next'")).await.colour(600, 400), "lime");
    assert_eq!(site.hits("/next"), 1);
    for (script, part) in [
        ("throw new Error('no such thing\\nsecret')", "`script` failed: Error: no such thing"),
        ("await Promise.reject('late')", "`script` failed: late"),
        ("missing.member", "`script` failed: ReferenceError: missing is not defined"),
        ("((", "`script` failed: SyntaxError"),
        ("for (;;);", "still running after 5 seconds"),
        ("await new Promise(() => {})", "still running after 5 seconds"),
    ] {
        let (failure, _) = rig.fails(asked("/", script)).await;
        assert_eq!(failure.reason, RenderFailed);
        assert!(failure.message.contains(part) && !failure.message.contains("secret"), "{script}: {failure:?}");
    }
    rig.chromium.shutdown().await;
}

/// At rest, its left edge is lime, three times red, and lime.
fn moving(origin: &str) -> String {
    format!(
        "<!doctype html><body style='margin:0;background:white;height:1500px'><style>
        @keyframes turn {{ from {{ background: yellow }} to {{ background: black }} }}
        div, img, video, svg {{ display: block; width: 100px; height: 100px }}
        #css {{ background: lime; animation: turn 0.7s infinite alternate linear }}
        #step {{ background: blue; transition: background 3s linear }}
        input {{ width: 300px; font-size: 60px }}</style>
        <div id=css></div><img src={origin}/moving.gif><div id=step></div>
        <video src='data:video/webm;base64,{WEBM}' autoplay muted loop></video>
        <svg viewBox='0 0 10 10'><rect width=10 height=10 fill=lime><animate attributeName=fill values='lime;red'
            dur=1s repeatCount=indefinite calcMode=linear /></rect></svg>
        <input autofocus value=x>
        <script>requestAnimationFrame(() => {{ step.style.background = 'red' }})</script>"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn frozen_video_that_starts_again_shows_its_first_frame() {
    const VIDEOS: u32 = 24;
    let video = format!("<video src='data:video/webm;base64,{WEBM}' muted loop></video>");
    // The second half is out of view.
    let half = format!("<div>{}</div>", video.repeat(VIDEOS as usize / 2));
    let page = format!(
        "<!doctype html><body style='margin:0'>
        <style>div {{ height: 3000px }} video {{ float: left; width: 100px; height: 100px }}</style>{half}{half}
        <script>
            [...document.querySelectorAll('video')].forEach((video, at) => {{
                // Each ends, and starts again, at another time.
                setTimeout(() => {{ video.autoplay = true; video.play() }}, at % 12 * 70);
                // When it is stopped, as if it had just sought by itself.
                const seeked = () => video.autoplay || video.dispatchEvent(new Event('seeked'));
                new MutationObserver(seeked).observe(video, {{ attributeFilter: ['autoplay'] }});
            }});
        </script>"
    );
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    for delay_ms in [0, 370, 640] {
        let asked = CaptureRequest { freeze: Some(true), full_page: Some(true), ..request(&site.url("/")) };
        let image = rig.capture(CaptureRequest { delay_ms: Some(delay_ms), ..asked }).await;
        let shown = (0..VIDEOS).map(|at| image.colour(at % 12 * 100 + 50, at / 12 * 3000 + 50)).collect::<Vec<_>>();
        assert!(shown.iter().all(|colour| *colour == "red"), "{delay_ms}: {shown:?}");
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frozen_page_gives_the_same_bytes_every_time() {
    use base64::Engine as _;
    let gif = base64::engine::general_purpose::STANDARD.decode(GIF).unwrap();
    let images = Site::start(2, [("/moving.gif", answer("200 OK", "Content-Type: image/gif", gif))]).await;
    let site = Site::start(2, [("/", html(moving(&images.url(""))))]).await;
    let rig = Rig::start().await;
    for full_page in [false, true] {
        let asked = || CaptureRequest { freeze: Some(true), full_page: Some(full_page), ..request(&site.url("/")) };
        let first = rig.capture(asked()).await;
        // Different waits would show a different state of what moves.
        for delay_ms in [0, 130, 370, 810] {
            let again = rig.capture(CaptureRequest { delay_ms: Some(delay_ms), ..asked() }).await;
            assert!(again.capture.image == first.capture.image, "{full_page} {delay_ms}");
        }
        let colours = [50, 150, 250, 350, 450].map(|y| first.colour(50, y));
        assert_eq!(colours, ["lime", "red", "red", "red", "lime"], "{full_page}");
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn page_describes_itself_within_limits() {
    let head = "<!doctype html><html lang=de-AT><head><title>  Über \n &lt;b&gt;uns&lt;/b&gt; </title>
        <meta name=Description content='Was wir tun'><link rel=canonical href=/about>
        <link rel='shortcut icon' href='/icon.png'><meta property='og:title' content='Für  Links'>
        <meta property='og:image' content='/card.png'><meta property='og:type' content=website></head><body style='margin:0'><div style='width:2000px;height:1500px'>";
    let long = format!(
        "<title>{}</title><meta name=description content='{}'><link rel=icon href='data:image/png,'>
        <link rel=canonical href='/{}'>",
        "ü".repeat(400),
        "x".repeat(2000),
        "y".repeat(3000)
    );
    let site = Site::start(
        2,
        [
            ("/", html(head)),
            ("/long", html(long)),
            ("/by-script", html("<script>location.replace('/to?/')</script>")),
            ("/clobbered", html("<form name=title></form><body style='height:10px'>")),
        ],
    )
    .await;
    let rig = Rig::start().await;
    let metadata = rig.grab(&site.url("/by-script")).await.metadata;
    let url = |path: &str| Some(site.url(path));
    let expected = PageInfo {
        title: Some("Über <b>uns</b>".to_owned()),
        description: Some("Was wir tun".to_owned()),
        lang: Some("de-AT".to_owned()),
        canonical_url: url("/about"),
        icon_url: url("/icon.png"),
        open_graph: Some(OpenGraph {
            title: Some("Für Links".to_owned()),
            image: url("/card.png"),
            kind: Some("website".to_owned()),
            ..OpenGraph::default()
        }),
        page_width: Some(2000),
        page_height: Some(1500),
        words: Some(0),
    };
    assert_eq!((metadata.page, metadata.redirects), (expected, Some(2)));
    let timings = metadata.timings.unwrap();
    assert!(timings.load_ms.is_some() && timings.navigate_ms < 25_000, "{timings:?}");
    let metadata = rig.grab(&site.url("/long")).await.metadata;
    let PageInfo { title, description, icon_url, canonical_url, .. } = metadata.page;
    assert_eq!((title, description), (Some("ü".repeat(300)), Some("x".repeat(1000))));
    assert_eq!((icon_url, canonical_url, metadata.redirects), (None, None, Some(0)));
    let metadata = rig.grab(&site.url("/clobbered")).await.metadata;
    assert_eq!((metadata.page.title, metadata.page.page_height), (None, Some(720)));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_a_page_shows_are_counted() {
    let many = "<i>a </i>".repeat(30_001);
    let pages = [
        ("/two", "<p>Two words</p>", Some(2)),
        (
            "/signs",
            "<p>It's 3.5 e-mails – now.</p><p hidden>no</p><style>p{}</style><script>let x = 1</script>",
            Some(4),
        ),
        ("/chinese", "<p>日本語 text</p>", Some(4)),
        ("/thai", "<p>ภาษาไทย</p>", Some(2)),
        (
            "/shadow",
            "<div id=h></div><script>h.attachShadow({mode:'open'}).innerHTML='<p>in a shadow'</script>",
            Some(3),
        ),
        ("/none", "", Some(0)),
        ("/many", many.as_str(), None),
    ];
    let site = Site::start(2, pages.map(|(path, body, _)| (path, html(body)))).await;
    let rig = Rig::start().await;
    for (path, _, words) in pages {
        assert_eq!(rig.grab(&site.url(path)).await.metadata.page.words, words, "{path}");
    }
    rig.chromium.shutdown().await;
}
