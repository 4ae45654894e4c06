//! Workers and worklets of a page: what they are about to do is waited for, and what they draw is in the image.

use grabd_domain::capture::CaptureRequest;
use grabd_domain::grabs::SettledBy;

use crate::rig::{Rig, request};
use crate::site::{Reply, Site, html};

const BOX: &str = "position:absolute;left:100px;top:100px;width:100px;height:100px";

/// More text than a page has that is still loading.
fn text() -> String {
    "<p>The ferry leaves twice a day, and on Sundays once.</p>".repeat(8)
}

/// A page with a red box, which becomes lime when the worker with this source sends a message.
fn answered_by(source: &str) -> Reply {
    html(format!(
        "<body>{}<div id=d style='{BOX};background:red'></div><script>
            const w = new Worker(URL.createObjectURL(new Blob([`{source}`])));
            w.onmessage = () => {{ d.style.background = 'lime' }}; w.postMessage(1)</script>",
        text()
    ))
}

/// A page with a canvas that the worker with this source gets as `canvas`.
fn drawn_by(source: &str) -> Reply {
    html(format!(
        "<body>{}<canvas id=c width=100 height=100 style='{BOX}'></canvas><script>
            const source = `onmessage = ({{ data: canvas }}) => {{ const pen = canvas.getContext('2d');
                const fill = (colour) => {{ pen.fillStyle = colour; pen.fillRect(0, 0, 100, 100) }}; {source} }}`;
            const canvas = c.transferControlToOffscreen();
            new Worker(URL.createObjectURL(new Blob([source]))).postMessage(canvas, [canvas])</script>",
        text()
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn timers_of_workers_are_waited_for() {
    let nested =
        "new Worker('data:text/javascript,setTimeout(() => postMessage(1), 600)').onmessage = () => postMessage(1)";
    let site = Site::start(
        2,
        [
            ("/timer", answered_by("setTimeout(() => postMessage(1), 1200)")),
            ("/chain", answered_by("onmessage = () => setTimeout(() => setTimeout(() => postMessage(1), 500), 500)")),
            ("/nested", answered_by(nested)),
            // Timers that do not fire, and a loop that never ends.
            ("/cleared", answered_by("clearTimeout(setTimeout(() => {}, 1400)); postMessage(1)")),
            (
                "/loop",
                answered_by("const next = () => setTimeout(next, 100); next(); setTimeout(() => postMessage(1), 400)"),
            ),
            (
                "/async-loop",
                answered_by(
                    "(async () => { for (;;) await new Promise((r) => setTimeout(r, 100)) })(); postMessage(1)",
                ),
            ),
        ],
    )
    .await;
    let rig = Rig::start().await;
    for path in ["/timer", "/chain", "/nested", "/cleared", "/loop", "/async-loop"] {
        let image = rig.grab(&site.url(path)).await;
        assert_eq!(image.colour(150, 150), "lime", "{path}");
        assert_eq!(image.metadata.settled_by, Some(SettledBy::Quiet), "{path}");
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drawings_of_workers_are_complete() {
    let frames =
        "let n = 0; const draw = () => { fill(++n < 30 ? 'red' : 'lime'); if (n < 30) requestAnimationFrame(draw) };";
    let site = Site::start(
        2,
        [
            ("/once", drawn_by("fill('lime')")),
            ("/frames", drawn_by(&format!("{frames} draw()"))),
            ("/later", drawn_by(&format!("{frames} setTimeout(draw, 300)"))),
            ("/endless", drawn_by("const draw = () => { fill('lime'); requestAnimationFrame(draw) }; draw()")),
        ],
    )
    .await;
    let rig = Rig::start().await;
    for path in ["/once", "/frames", "/later", "/endless"] {
        for delay_ms in [None, Some(1500)] {
            let image = rig.capture(CaptureRequest { delay_ms, ..request(&site.url(path)) }).await;
            assert_eq!(image.colour(150, 150), "lime", "{path}, {delay_ms:?}");
            assert_eq!(image.metadata.settled_by, Some(SettledBy::Quiet), "{path}, {delay_ms:?}");
        }
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn worklets_run() {
    let paint = "registerPaint(`p`, class { paint(pen, size) { pen.fillStyle = `lime`; pen.fillRect(0, 0, size.width, size.height) } })";
    let module = |source: &str| format!("URL.createObjectURL(new Blob([\"{source}\"], {{ type: 'text/javascript' }}))");
    let audio = "registerProcessor(`p`, class extends AudioWorkletProcessor { process() { return false } })";
    let site = Site::start(
        2,
        [
            ("/paint", html(format!(
                "<body>{}<div style='{BOX};background:paint(p)'></div><script>CSS.paintWorklet.addModule({})</script>",
                text(), module(paint)
            ))),
            ("/audio", html(format!(
                "<body>{}<div id=d style='{BOX};background:red'></div><script>
                    new OfflineAudioContext(1, 128, 44100).audioWorklet.addModule({}).then(() => {{ d.style.background = 'lime' }})</script>",
                text(), module(audio)
            ))),
        ],
    )
    .await;
    let rig = Rig::start().await;
    for path in ["/paint", "/audio"] {
        let image = rig.grab(&site.url(path)).await;
        assert_eq!(image.colour(150, 150), "lime", "{path}");
    }
    rig.chromium.shutdown().await;
}
