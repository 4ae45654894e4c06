//! The image shows the page: colours at their positions, with the requested size and format.

use grabd_domain::capture::CaptureRequest;
use grabd_domain::grabs::{FailureReason, SettledBy};
use grabd_domain::limits::PAGE_URL_BYTES;
use grabd_memory::MemoryBudget;
use serde_json::json;

use crate::rig::{Rig, request, with_steps};
use crate::site::{Reply, Site, html};

const CORNERS: &str = "<!doctype html><body style='margin:0;background:white'>
    <div style='position:fixed;left:0;top:0;width:50px;height:50px;background:red'></div>
    <div style='position:fixed;right:0;bottom:0;width:50px;height:50px;background:blue'></div>";

#[tokio::test(flavor = "multi_thread")]
async fn image_has_the_requested_size_and_format() {
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
            let image = rig.capture(asked).await;
            assert!(image.capture.image.starts_with(magic), "{format}");
            assert_eq!(image.size(), (width, height), "{format}");
            assert_eq!(image.colour(10, 10), "red", "{format} {width}");
            assert_eq!(image.colour(width - 10, height - 10), "blue", "{format} {width}");
            assert_eq!(image.colour(width / 2, height / 2), "white", "{format} {width}");
        }
    }
    rig.chromium.shutdown().await;
}

/// The type of the pixels of a PNG, as its head says: grey 0, colours 2, a palette 3. And the bits of a channel.
fn pixel_type(file: &[u8]) -> (u8, u8) {
    assert!(file.starts_with(b"\x89PNG"));
    (file[25], file[24])
}

#[tokio::test(flavor = "multi_thread")]
async fn png_is_small_wherever_it_comes_from() {
    let grey =
        "<!doctype html><body style='margin:0;height:3000px;background:linear-gradient(#fff 600px,#808080 601px)'>
        <div style='width:50px;height:50px;background:#000'></div>";
    let soft = "<!doctype html><style>body { margin: 0; height: 100vh;
        background: radial-gradient(circle at 30% 30%, #fde68a, #f472b6 50%, #4c1d95) }</style><body>";
    let site = Site::start(2, [("/", html(CORNERS)), ("/grey", html(grey)), ("/soft", html(soft))]).await;
    let rig = Rig::start().await;
    // A frame of the window, whose three colours take two bits. The browser's file has more than 10 kB.
    let image = rig.grab(&site.url("/")).await;
    assert_eq!(pixel_type(&image.capture.image), (3, 2));
    assert!(image.capture.image.len() < 2000, "{} bytes", image.capture.image.len());
    assert_eq!((image.colour(10, 10), image.colour(1270, 710), image.colour(640, 360)), ("red", "blue", "white"));
    // Of a small image, for which little memory is reserved.
    let small = CaptureRequest { width: Some(320), height: Some(240), ..request(&site.url("/")) };
    assert_eq!(pixel_type(&rig.capture(small).await.capture.image), (3, 2));
    // Of a step and of further viewports.
    let mut several = with_steps(&site.url("/"), &json!([{ "capture": "first" }]));
    let viewports = json!([{ "width": 320, "height": 480 }, { "width": 320, "height": 240 }]);
    assert!(several.set("viewports", serde_json::from_value(viewports).unwrap()));
    let small = CaptureRequest { width: Some(320), height: Some(240), ..several };
    let capture = rig.render(small).await.unwrap();
    let further = capture.viewports.iter().map(|image| &image.content);
    for file in capture.step_images.iter().map(|image| &image.content).chain(further).chain([&capture.image]) {
        assert_eq!(pixel_type(file), (3, 2));
    }
    assert_eq!((capture.step_images.len(), capture.viewports.len()), (1, 2));
    // A screenshot of the page, of which the browser's file has more than 60 kB.
    let whole = CaptureRequest { full_page: Some(true), ..request(&site.url("/grey")) };
    let image = rig.capture(whole).await;
    assert_eq!(image.size(), (1280, 3000));
    assert!(image.capture.image.len() < 12_000, "{} bytes", image.capture.image.len());
    assert_eq!((image.colour(10, 10), image.colour(100, 10), image.colour(640, 2900)), ("black", "white", "gray"));
    // Many colours. The browser's file has more than 500 kB.
    let image = rig.grab(&site.url("/soft")).await;
    assert_eq!(pixel_type(&image.capture.image), (2, 8));
    assert!(image.capture.image.len() < 450_000, "{} bytes", image.capture.image.len());
    // Lossy formats are the browser's own.
    let jpeg = CaptureRequest { format: Some("jpeg".into()), ..request(&site.url("/")) };
    assert!(rig.capture(jpeg).await.capture.image.starts_with(b"\xff\xd8\xff"));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scale_multiplies_the_pixels_and_cuts_what_becomes_too_large() {
    let tall = "<!doctype html><body style='margin:0;background:white'>
        <div style='width:50px;height:50px;background:red'></div><div style='height:7950px'></div>
        <div style='width:50px;height:50px;background:blue'></div>";
    let site = Site::start(2, [("/", html(CORNERS)), ("/tall", html(tall))]).await;
    let rig = Rig::start().await;
    let url = site.url("/");
    let scaled = |scale: f64, url: &str| CaptureRequest { scale: Some(scale), ..request(url) };
    for (scale, size) in [(1.0, (1280, 720)), (2.0, (2560, 1440)), (1.5, (1920, 1080))] {
        let image = rig.capture(scaled(scale, &url)).await;
        assert_eq!(image.size(), size);
        let corner = if scale > 1.0 { 60 } else { 40 };
        assert_eq!(image.colour(corner, corner), "red", "the box grows with the scale");
        assert_eq!(image.colour(size.0 - 10, size.1 - 10), "blue");
    }
    let whole = |scale| CaptureRequest { full_page: Some(true), ..scaled(scale, &site.url("/tall")) };
    let image = rig.capture(whole(2.0)).await;
    assert_eq!(
        (image.size(), image.metadata.truncated),
        ((2560, 12_288), true),
        "as many pixels as a page of 1920 x 16384"
    );
    assert_eq!(image.colour(90, 90), "red");
    let element = CaptureRequest { selector: Some("div".to_owned()), ..scaled(2.0, &site.url("/tall")) };
    assert_eq!(rig.capture(element).await.size(), (100, 100));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_describes_the_shown_document() {
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
        let image = rig.grab(&site.url(path)).await;
        assert_eq!(image.metadata.final_url, Some(site.url(last)), "{path}");
        assert_eq!(image.metadata.http_status, Some(status), "{path}");
        assert_eq!(image.metadata.settled_by, Some(SettledBy::Quiet), "{path}");
        assert_eq!(image.colour(600, 400), colour, "{path}");
        assert_eq!(image.metadata.blocked_requests, 0, "{path}");
    }
    let redirected = rig.grab(&site.url(&format!("/to?{}", site.url("/gone")))).await;
    assert_eq!((redirected.metadata.final_url, redirected.metadata.http_status), (Some(site.url("/gone")), Some(404)));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn url_that_a_page_made_very_long_is_shortened() {
    let script = "<title>x</title><script>history.replaceState(null, '', '?' + 'a'.repeat(1.9e6))</script>";
    let site = Site::start(2, [("/", html(script))]).await;
    let rig = Rig::start().await;
    let url = rig.grab(&site.url("/")).await.metadata.final_url.unwrap();
    assert!(url.len() <= PAGE_URL_BYTES && url.starts_with(&site.url("/?aaa")), "{} bytes", url.len());
    assert!(url.ends_with("aaa…"));
    rig.chromium.shutdown().await;
}

/// Writes to every storage a page has. The image is red if the page finds anything stored.
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
async fn no_data_of_a_grab_is_visible_to_the_next() {
    let again =
        STORES.replace("new Image().src = '/done'", "if (!location.hash) { location.hash = 'b'; location.reload() }");
    let site = Site::start(2, [("/", html(STORES)), ("/again", html(again))]).await;
    let rig = Rig::start().await;
    for _ in 0..3 {
        assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "lime");
    }
    // The same page finds its data when it is loaded twice in one grab.
    assert_eq!(rig.grab(&site.url("/again")).await.colour(600, 400), "red");
    rig.chromium.shutdown().await;
}

/// A page of this height whose pixels do not compress.
fn noise(height: u32) -> Reply {
    html(format!(
        "<!doctype html><body style='margin:0'><canvas width=640 height={height} style='display:block'></canvas><script>
        const canvas = document.querySelector('canvas').getContext('2d');
        const pixels = canvas.createImageData(640, {height});
        for (let at = 0; at < pixels.data.length; at += 65536) {{
            crypto.getRandomValues(pixels.data.subarray(at, at + 65536));
        }}
        for (let at = 3; at < pixels.data.length; at += 4) pixels.data[at] = 255;
        canvas.putImageData(pixels, 0, 0);</script>"
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn image_above_the_size_limit_fails_with_its_size_and_a_remedy() {
    let site = Site::start(2, [("/", noise(480)), ("/long", noise(12_000))]).await;
    let memory = MemoryBudget::new(64 << 20);
    let rig = Rig::with(&[2], |options| {
        options.image_max_bytes = 600_000;
        options.memory = memory.clone();
    })
    .await;
    let page = |path: &str| CaptureRequest { width: Some(640), height: Some(480), ..request(&site.url(path)) };
    // A frame, a screenshot, and one whose message is too large to be received.
    let scaled = CaptureRequest { scale: Some(1.5), ..page("/") };
    let long = CaptureRequest { full_page: Some(true), ..page("/long") };
    for (name, request, least_mb) in [("frame", page("/"), 0.8), ("screenshot", scaled, 1.0), ("message", long, 16.0)] {
        let (failure, _) = rig.fails(request).await;
        assert_eq!(failure.reason, FailureReason::RenderFailed, "{name}: {failure:?}");
        let seen =
            failure.message.strip_prefix("The image has ").and_then(|rest| rest.split_once(" MB; at most 0.6 MB"));
        let (seen, remedy) = seen.unwrap_or_else(|| panic!("{name}: {failure:?}"));
        assert!(seen.parse::<f64>().unwrap() >= least_mb && remedy.contains("jpeg"), "{name}: {failure:?}");
        assert_eq!(memory.reserved_bytes(), 0, "{name}");
    }
    let jpeg = CaptureRequest { format: Some("jpeg".into()), quality: Some(20), ..page("/") };
    let image = rig.capture(jpeg).await;
    assert_eq!(image.size(), (640, 480));
    let kept = (image.capture.image.len() as u64).next_multiple_of(1 << 10);
    assert_eq!(memory.reserved_bytes(), kept, "the image's memory is reserved while it exists");
    drop(image);
    assert_eq!(memory.reserved_bytes(), 0);
    rig.chromium.shutdown().await;
}

/// The largest amount of memory that this process has had so far, in bytes.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[tokio::test(flavor = "multi_thread")]
async fn images_take_at_most_twice_their_size_until_they_are_taken() {
    let site = Site::start(2, [("/", html("<p>hello")), ("/long", noise(9000))]).await;
    let rig = Rig::with(&[2], |options| options.slots = 4).await;
    rig.grab(&site.url("/")).await;
    let before = peak_bytes();
    let long = || CaptureRequest { full_page: Some(true), width: Some(640), ..request(&site.url("/long")) };
    let captures = futures::future::join_all((0..4).map(|_| rig.render(long()))).await;
    let grown = peak_bytes() - before;
    let total: u64 = captures.into_iter().map(|capture| capture.unwrap().image.len() as u64).sum();
    println!("four images of {total} bytes together took {grown} bytes");
    assert!(total > 60 << 20, "{total}");
    assert!(grown < 2 * total + (16 << 20), "{grown} bytes for images of {total}");
    rig.chromium.shutdown().await;
}
