//! The picture is of the page: colours in their places, size and format as asked.

use grabd_domain::capture::CaptureRequest;
use grabd_domain::grabs::SettledBy;

use crate::rig::{Rig, request};
use crate::site::{Site, html};

const CORNERS: &str = "<!doctype html><body style='margin:0;background:white'>
    <div style='position:fixed;left:0;top:0;width:50px;height:50px;background:red'></div>
    <div style='position:fixed;right:0;bottom:0;width:50px;height:50px;background:blue'></div>";

#[tokio::test(flavor = "multi_thread")]
async fn size_format_and_place_are_as_asked() {
    let site = Site::start(2, [("/", html(CORNERS))]).await;
    let rig = Rig::start().await;
    let url = site.url("/");
    for (width, height) in [(1280, 720), (320, 240), (1920, 1080)] {
        for (format, magic) in [("png", &b"\x89PNG"[..]), ("jpeg", b"\xff\xd8\xff"), ("webp", b"RIFF")] {
            let asked = CaptureRequest {
                width: Some(width.into()),
                height: Some(height.into()),
                format: Some(format.into()),
                ..request(&url)
            };
            let picture = rig.picture(asked).await;
            assert!(picture.capture.image.starts_with(magic), "{format}");
            assert_eq!(picture.size(), (width, height), "{format}");
            assert_eq!(picture.colour(10, 10), "red", "{format} {width}");
            assert_eq!(picture.colour(width - 10, height - 10), "blue", "{format} {width}");
            assert_eq!(picture.colour(width / 2, height / 2), "white", "{format} {width}");
        }
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_facts_are_those_of_the_document_shown() {
    let pages = [
        ("/", html("<title>x</title><p>hello")),
        ("/gone", crate::site::answer("404 Not Found", "Content-Type: text/html", "<body style='background:red'>")),
        ("/broken", crate::site::answer("500 Oh", "Content-Type: text/html", "<body style='background:blue'>")),
        ("/script", html("<script>location.replace('/final#part')</script>")),
        ("/final", html("<body style='background:lime'><script>history.pushState(0, '', '/pushed')</script>")),
    ];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    for (path, last, status, colour) in [
        ("/", "/", 200, "white"),
        ("/gone", "/gone", 404, "red"),
        ("/broken", "/broken", 500, "blue"),
        ("/script", "/pushed", 200, "lime"),
    ] {
        let picture = rig.grab(&site.url(path)).await;
        assert_eq!(picture.facts.final_url, Some(site.url(last)), "{path}");
        assert_eq!(picture.facts.http_status, Some(status), "{path}");
        assert_eq!(picture.facts.settled_by, Some(SettledBy::Quiet), "{path}");
        assert_eq!(picture.colour(600, 400), colour, "{path}");
        assert_eq!(picture.facts.blocked_requests, 0, "{path}");
    }
    let redirected = rig.grab(&site.url(&format!("/to?{}", site.url("/gone")))).await;
    assert_eq!((redirected.facts.final_url, redirected.facts.http_status), (Some(site.url("/gone")), Some(404)));
    rig.chromium.shutdown().await;
}

/// What one page leaves behind in every store it has; the picture is red when it finds anything.
const STORES: &str = "<!doctype html><body><script>
    const found = document.cookie + (localStorage.seen ?? '') + (window.name ?? '');
    document.cookie = 'seen=1;max-age=1000'; localStorage.seen = 'yes'; window.name = 'seen';
    caches.keys().then(async (keys) => {
      await caches.open('seen');
      document.body.style.background = found + keys.join() ? 'red' : 'lime';
      new Image().src = '/done';
    });
    </script>";

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_grab_is_left_for_the_next() {
    let again =
        STORES.replace("new Image().src = '/done'", "if (!location.hash) { location.hash = 'b'; location.reload() }");
    let site = Site::start(2, [("/", html(STORES)), ("/again", html(again))]).await;
    let rig = Rig::start().await;
    for _ in 0..3 {
        assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "lime");
    }
    // The same page sees itself when it is loaded twice in one grab.
    assert_eq!(rig.grab(&site.url("/again")).await.colour(600, 400), "red");
    rig.chromium.shutdown().await;
}
