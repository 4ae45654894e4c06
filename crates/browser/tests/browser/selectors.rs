//! Selectors of options that are none of CSS.

use std::time::Duration;

use grabd_domain::capture::CaptureRequest;
use grabd_domain::grabs::FailureReason::RenderFailed;

use crate::rig::{Rig, request};
use crate::site::{Site, html};

/// What comes late comes after the page would have settled otherwise. Ids that our scripts could use for globals do no harm.
const PAGE: &str = "<!doctype html><body style='margin:0;background:red'><div id=host></div><i id=steps></i><i id=page></i>
    <div role=region aria-label='Totals' style='position:absolute;top:900px;left:0;width:200px;height:100px;background:lime'></div>
    <p style='position:absolute;top:300px;left:0;width:300px;height:50px;margin:0;background:blue'>Total <b>price</b></p>
    <p id=loading>Loading</p><button onclick=\"document.body.style.background = 'yellow'\">Open</button>
    <iframe srcdoc=\"<script>setTimeout(() => { document.body.append('Done') }, 2500)</script>\"></iframe><script>
    host.attachShadow({ mode: 'open' }).innerHTML = '<p role=alert>Sold out</p>';
    setTimeout(() => {
        loading.remove();
        document.body.insertAdjacentHTML('beforeend', '<p>Ready</p>');
        document.title = 'ready';
    }, 2500);
    </script>";

#[tokio::test(flavor = "multi_thread")]
async fn elements_are_named_by_text_and_role() {
    let site = Site::start(2, [("/", html(PAGE))]).await;
    let rig = Rig::with(&[2], |options| options.settle_budget = Duration::from_secs(2)).await;
    let asked = || request(&site.url("/"));
    let element = |selector: &str| CaptureRequest { selector: Some(selector.to_owned()), ..asked() };
    let region = rig.capture(element("role=region[name=totals]")).await;
    assert_eq!((region.size(), region.colour(100, 50)), ((200, 100), "lime"));
    let text = rig.capture(element("text=total price")).await;
    assert_eq!((text.size(), text.colour(290, 45)), ((300, 50), "blue"));

    let awaited = |selector: &str| CaptureRequest { wait_for: Some(selector.to_owned()), ..asked() };
    let ready = rig.capture(awaited("text=\"Ready\"")).await;
    assert_eq!(ready.metadata.page.title.as_deref(), Some("ready"));
    let gone = rig.capture(CaptureRequest { wait_for_gone: Some("text=Loading".into()), ..asked() }).await;
    assert_eq!(gone.metadata.page.title.as_deref(), Some("ready"));
    let in_frame = rig.capture(awaited("iframe >> text=Done")).await;
    assert_eq!(in_frame.metadata.page.title.as_deref(), Some("ready"));
    // In a string, the same characters are CSS.
    let css = CaptureRequest { wait_for: Some("body:not([title=\"a >> b\"])".into()), ..asked() };
    assert_eq!(rig.capture(css).await.colour(900, 500), "red");

    let clicked = rig.capture(CaptureRequest { click: Some(vec!["role=button[name=Open]".into()]), ..asked() }).await;
    assert_eq!(clicked.colour(900, 500), "yellow");
    let unwanted = |selector: &str| CaptureRequest { fail_if_selector: Some(selector.to_owned()), ..asked() };
    assert_eq!(rig.capture(unwanted("text=Not there")).await.colour(900, 500), "red");
    for (refused, message) in [
        (unwanted("role=alert"), "matches `fail_if_selector` \"role=alert\"."),
        (element("text=Not there"), "`selector` \"text=Not there\" matches nothing on the page."),
        (element("role=button[label=x]"), "is not a valid CSS selector."),
        (element("iframe >> text=Done"), "is not a valid CSS selector."),
        (element("text=iframe >> b"), "is not a valid CSS selector."),
        (
            CaptureRequest { timeout_ms: Some(5000), ..awaited("#none >> text=Done") },
            "`wait_for`: nothing matches \"#none\" within",
        ),
    ] {
        let (failure, _) = rig.fails(refused).await;
        assert_eq!(failure.reason, RenderFailed, "{failure:?}");
        assert!(failure.message.contains(message), "{failure:?}");
    }
    rig.chromium.shutdown().await;
}
