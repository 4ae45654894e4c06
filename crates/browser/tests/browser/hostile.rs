//! Hostile and careless pages. Every capture ends, and the browser survives.

use std::time::{Duration, Instant};

use grabd_browser::FrameMode;
use grabd_domain::capture::CaptureRequest;
use grabd_domain::grabs::FailureReason::RenderFailed;
use grabd_domain::grabs::SettledBy;
use grabd_domain::render::{RenderError, RenderTask, Renderer};

use crate::rig::{DecodedImage, Rig, request, task};
use crate::site::{Reply, Site, answer, html};

const GREEN: &str = "<body style='background:lime'>";

fn green(script: &str) -> Reply {
    html(format!("{GREEN}<script>{script}</script>"))
}

#[tokio::test(flavor = "multi_thread")]
async fn blocking_page_features_do_not_delay_the_capture() {
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
        let image = rig.grab(&site.url(path)).await;
        assert_eq!(image.colour(900, 600), "lime", "{path}");
        assert!(started.elapsed() < Duration::from_secs(8), "{path}: {:?}", started.elapsed());
    }
    assert_eq!(site.hits("/popup"), 0, "a popup was opened");
    assert!(rig.chromium.health().restarts.is_empty());
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn uncapturable_page_fails_without_affecting_the_next() {
    let pages = [
        ("/dialogs", green("for (;;) alert(1)")),
        ("/busy", green("for (;;) ;")),
        ("/busy-later", green("onload = () => setTimeout(() => { for (;;) ; }, 30)")),
        // What was drawn before is displayed without the page. It has one colour.
        (
            "/busy-drawn",
            green(
                "onload = () => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => { for (;;) ; })))",
            ),
        ),
        ("/closes", green("onload = () => window.close()")),
        (
            "/blobs",
            green(
                "const page = new Blob([document.documentElement.outerHTML], { type: 'text/html' });
            location.href = URL.createObjectURL(page)",
            ),
        ),
        ("/silent", Reply::Silence),
        ("/", html(GREEN)),
    ];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    for (path, seconds, parts) in [
        ("/dialogs", 4, &["dialog"][..]),
        ("/busy", 4, &["did not finish", "did not respond"]),
        ("/busy-later", 4, &["did not finish", "did not respond"]),
        ("/busy-drawn", 4, &["did not finish", "did not respond"]),
        // Stopped after twenty documents, which take more than four seconds on a busy machine.
        ("/blobs", 20, &["not on the web", "without end"]),
        ("/silent", 4, &["in time", "did not finish"]),
    ] {
        let mut task = task(request(&site.url(path)));
        task.budget = Duration::from_secs(seconds);
        let started = Instant::now();
        let failure = match rig.chromium.render(task).await {
            Err(RenderError::Page { failure, .. }) => failure,
            ended => panic!("{path}: {:?}", ended.map(|capture| capture.metadata)),
        };
        assert_eq!(failure.reason, RenderFailed, "{path}");
        assert!(parts.iter().any(|part| failure.message.contains(part)), "{path}: {}", failure.message);
        assert!(started.elapsed() < Duration::from_secs(seconds + 3), "{path}: {:?}", started.elapsed());
        assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "lime", "after {path}");
    }
    // A page may close itself only if a script opened it. If it does, the failure says so.
    if let Err(error) = rig.render(request(&site.url("/closes"))).await {
        let RenderError::Page { failure, .. } = error else { panic!("{error:?}") };
        assert!(failure.message.contains("closed itself"), "{}", failure.message);
    }
    // A loop that begins during a frame keeps it from ending, so that the browser of the page is replaced. On a busy machine,
    // disposing of the page may take too long.
    let restarts = rig.chromium.health().restarts;
    assert!(restarts.keys().all(|why| ["hung", "excess"].contains(why)), "{restarts:?}");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_navigation_is_stopped_and_captured() {
    let pages = [
        ("/refresh", html(format!("<meta http-equiv=refresh content=0>{GREEN}"))),
        ("/reloads", green("location.replace('/reloads?' + Math.random())")),
    ];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    for path in ["/refresh", "/reloads"] {
        let image = rig.grab(&site.url(path)).await;
        assert_eq!(image.colour(900, 600), "lime", "{path}");
        assert_eq!(image.metadata.settled_by, Some(SettledBy::Deadline), "{path}");
        // On a busy machine, the document at which the navigation is stopped may have no image in virtual time. Then the page
        // is captured again in real time.
        let visits = site.hits(path);
        assert!((20..=30).contains(&visits) || (40..=60).contains(&visits), "{path}: {visits} visits");
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refreshing_page_is_captured_at_the_deadline() {
    let refreshes = html(format!("<meta http-equiv=refresh content=0>{GREEN}")).after(600);
    let site = Site::start(2, [("/refresh", refreshes)]).await;
    let rig = Rig::start().await;
    let task = RenderTask { budget: Duration::from_secs(10), ..task(request(&site.url("/refresh"))) };
    let image = DecodedImage::from(rig.chromium.render(task).await.unwrap());
    assert_eq!((image.colour(900, 600), image.metadata.settled_by), ("lime", Some(SettledBy::Deadline)));
    assert!(site.hits("/refresh") < 20, "{} visits", site.hits("/refresh"));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn overwritten_page_globals_do_not_affect_our_scripts() {
    let tampered = "
        <div id=target style='position:absolute;top:900px;width:50px;height:40px;background:blue'></div>
        <script>
        const no = () => { throw 1 }, never = () => new Promise(() => {});
        Array.prototype.filter = no; Array.prototype.map = no; Array.prototype[Symbol.iterator] = no;
        Promise.prototype.then = never; Promise.all = never; Promise.race = never;
        window.requestAnimationFrame = never; window.scheduler = { postTask: never };
        performance.now = () => NaN; window.MutationObserver = no; window.scrollTo = no;
        Document.prototype.querySelector = no; Element.prototype.getBoundingClientRect = no;
        Object.defineProperty(document, 'fonts', { get: () => ({ ready: never() }) });
        setInterval(() => { for (let i = 0; i < 1000; i++) { clearTimeout(i); cancelAnimationFrame(i) } });
        </script>";
    let site = Site::start(2, [("/", html(format!("{GREEN}{tampered}")))]).await;
    let rig = Rig::start().await;
    let image = rig.grab(&site.url("/")).await;
    assert_eq!((image.colour(900, 600), image.metadata.settled_by), ("lime", Some(SettledBy::Quiet)));
    let whole = rig.capture(CaptureRequest { full_page: Some(true), ..request(&site.url("/")) }).await;
    assert_eq!((whole.size(), whole.colour(10, 910)), ((1280, 940), "blue"));
    let element = CaptureRequest { selector: Some("#target".into()), ..request(&site.url("/")) };
    let element = rig.capture(element).await;
    assert_eq!((element.size(), element.colour(10, 10)), ((50, 40), "blue"));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn image_is_limited_to_the_maximum_page_size() {
    let site =
        Site::start(2, [("/", html(format!("{GREEN}<div id=x style='width:20000px;height:20000px'></div>")))]).await;
    let rig = Rig::start().await;
    let element = CaptureRequest { selector: Some("#x".into()), ..request(&site.url("/")) };
    let image = rig.capture(element).await;
    assert_eq!((image.size(), image.metadata.truncated), ((16384, 1920), true));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn page_that_blocks_drawing_does_not_block_the_next() {
    // One of these layers takes 23 s to draw on a fast machine, much more than the time of the capture.
    let filter = format!(
        "<svg width=0 height=0><filter id=f>{}</filter></svg>{}",
        "<feMorphology operator=dilate radius=60 />".repeat(100),
        "<div style='position:fixed;inset:0;will-change:transform;filter:url(#f);background:red'></div>".repeat(8)
    );
    let site = Site::start(2, [("/filter", html(filter)), ("/", html(GREEN))]).await;
    let rig = Rig::start().await;
    let task = RenderTask { budget: Duration::from_secs(8), ..task(request(&site.url("/filter"))) };
    let ended = rig.chromium.render(task).await;
    assert!(matches!(ended, Err(RenderError::Page { .. })), "{:?}", ended.map(|capture| capture.metadata));
    assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "lime");
    assert_eq!(rig.chromium.health().restarts, [("hung", 1)].into());
    rig.chromium.shutdown().await;

    // If all slots share a browser that draws by itself, the responsible page is unknown.
    let rig = Rig::with(&[2], |options| options.frames = FrameMode::Timer).await;
    let ended = rig.render(request(&site.url("/filter"))).await;
    assert!(matches!(ended, Err(RenderError::Lost(_))), "{:?}", ended.map(|capture| capture.metadata));
    assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "lime");
    assert_eq!(rig.chromium.health().restarts, [("hung", 1)].into());
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn page_that_loads_or_starts_too_much_is_stopped() {
    let pages = [
        // A pending load event is reported on any machine, however slow.
        ("/", html((0..8).map(|at| format!("<script src='/some?{at}'></script>")).collect::<String>())),
        ("/some", answer("200 OK", "Content-Type: text/javascript", " ".repeat(16 << 20))),
        ("/one", html("<script src=/much></script>")),
        ("/much", answer("200 OK", "Content-Type: text/javascript", " ".repeat(51 << 20))),
        (
            "/workers",
            html(
                "<img src=/silent><script>for (let i = 0; i < 100; i++) new Worker('data:text/javascript,setInterval(() => {})')</script>",
            ),
        ),
        ("/silent", Reply::Silence),
    ];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    for (path, part) in [("/", "loads more than"), ("/one", "loads more than"), ("/workers", "workers")] {
        rig.fails_with(&site.url(path), RenderFailed, part).await;
    }
    rig.chromium.shutdown().await;
}
