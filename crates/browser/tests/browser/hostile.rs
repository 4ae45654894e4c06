//! Pages that do not want to be captured, or do not care: each ends, and the browser lives on.

use std::time::{Duration, Instant};

use grabd_domain::grabs::FailureReason::RenderFailed;
use grabd_domain::render::{RenderError, Renderer};

use crate::rig::{Picture, Rig, request, task};
use crate::site::{Reply, Site, answer, html};

const GREEN: &str = "<body style='background:lime'>";

fn green(script: &str) -> Reply {
    html(format!("{GREEN}<script>{script}</script>"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_holds_others_up_does_not_hold_us_up() {
    let pages = [
        ("/alert", green("alert(1); confirm(2); prompt(3)")),
        ("/late-alert", green("onload = () => { alert(1); setTimeout(() => alert(2), 20) }")),
        ("/leave", green("onbeforeunload = (event) => { event.preventDefault(); return 'stay' }")),
        ("/print", green("print()")),
        ("/popups", green("for (let i = 0; i < 20; i++) open('/popup')")),
        ("/popup", html("<p>x")),
        (
            "/permissions",
            green(
                "navigator.geolocation.getCurrentPosition(() => {}); Notification.requestPermission();
            navigator.mediaDevices?.getUserMedia({ video: true }).catch(() => {})",
            ),
        ),
        ("/fullscreen", green("document.documentElement.requestFullscreen().catch(() => {})")),
        (
            "/tampered",
            green(
                "Promise.prototype.then = () => { throw 1 }; document.querySelector = null;
            Object.defineProperty(document, 'fonts', { get() { throw 2 } })",
            ),
        ),
        ("/protocol", green("location.href = 'mailto:a@b'")),
        ("/saves", green("onload = () => { location.href = '/file' }")),
        ("/file", answer("200 OK", "Content-Type: application/zip", "PK")),
    ];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    for path in [
        "/alert",
        "/late-alert",
        "/leave",
        "/print",
        "/popups",
        "/permissions",
        "/fullscreen",
        "/tampered",
        "/protocol",
        "/saves",
    ] {
        let started = Instant::now();
        let picture = rig.grab(&site.url(path)).await;
        assert_eq!(picture.colour(900, 600), "lime", "{path}");
        assert!(started.elapsed() < Duration::from_secs(8), "{path}: {:?}", started.elapsed());
    }
    assert_eq!(site.hits("/popup"), 0, "a popup was opened");
    assert!(rig.chromium.health().restarts.is_empty());
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_captured_fails_and_harms_nobody_else() {
    let pages = [
        ("/dialogs", green("for (;;) alert(1)")),
        ("/busy", green("for (;;) ;")),
        ("/busy-later", green("onload = () => setTimeout(() => { for (;;) ; }, 30)")),
        ("/closes", green("onload = () => window.close()")),
        ("/refresh", html(format!("<meta http-equiv=refresh content=0>{GREEN}"))),
        ("/reloads", green("location.replace('/reloads?' + Math.random())")),
        ("/silent", Reply::Silence),
        ("/", html(GREEN)),
    ];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    for (path, parts) in [
        ("/dialogs", &["dialog"][..]),
        ("/busy", &["did not finish", "did not respond"]),
        ("/busy-later", &["did not finish", "did not respond"]),
        ("/refresh", &["without end"]),
        ("/reloads", &["without end"]),
        ("/silent", &["in time", "did not finish"]),
    ] {
        let mut task = task(request(&site.url(path)));
        task.budget = Duration::from_secs(4);
        let started = Instant::now();
        let Err(RenderError::Page { failure, .. }) = rig.chromium.render(task).await else { panic!("{path}") };
        assert_eq!(failure.reason, RenderFailed, "{path}");
        assert!(parts.iter().any(|part| failure.message.contains(part)), "{path}: {}", failure.message);
        assert!(started.elapsed() < Duration::from_secs(6), "{path}: {:?}", started.elapsed());
        assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "lime", "after {path}");
    }
    // A page may close itself only where it was opened by a script; if it goes, it is told.
    if let Err(error) = rig.render(request(&site.url("/closes"))).await {
        let RenderError::Page { failure, .. } = error else { panic!("{error:?}") };
        assert!(failure.message.contains("closed itself"), "{}", failure.message);
    }
    assert!(rig.chromium.health().restarts.is_empty(), "{:?}", rig.chromium.health());
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_keeps_the_browser_from_drawing_does_not_keep_the_next_one() {
    let filter = format!(
        "<svg width=0 height=0><filter id=f>{}</filter></svg>
        <div style='position:fixed;inset:0;will-change:transform;filter:url(#f);background:red'></div>",
        "<feMorphology operator=dilate radius=60 />".repeat(100)
    );
    let site = Site::start(2, [("/filter", html(filter)), ("/", html(GREEN))]).await;
    let rig = Rig::start().await;
    let ended = rig.render(request(&site.url("/filter"))).await;
    assert!(matches!(ended, Err(RenderError::Lost(_))), "{:?}", ended.map(|capture| capture.facts));
    assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "lime");
    assert_eq!(rig.chromium.health().restarts, [("hung", 1)].into());
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_loads_too_much_is_cut() {
    let body = "x".repeat(8 << 20);
    let pages = [
        ("/", green("(async () => { for (;;) await (await fetch('/much')).text() })()")),
        ("/much", answer("200 OK", "Content-Type: text/plain", body)),
    ];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    let ended = rig.render(request(&site.url("/"))).await;
    match ended {
        Err(RenderError::Page { failure, .. }) => assert!(failure.message.contains("more than"), "{}", failure.message),
        Err(lost) => panic!("{lost:?}"),
        // A slow machine reaches the settle budget before the limit.
        Ok(capture) => assert_eq!(Picture::from(capture).colour(900, 600), "lime"),
    }
    rig.chromium.shutdown().await;
}
