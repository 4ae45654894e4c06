//! Documents of domains that are not captured are not requested: neither in the main frame nor in any other.

use std::sync::Arc;
use std::time::Duration;

use grabd_domain::capture::{CaptureRequest, CaptureSpec, Secret};
use grabd_domain::domains::{Domain, DomainRule, DomainRules};
use grabd_domain::grabs::{FailureReason, Warning};
use grabd_domain::ids::GrabId;
use grabd_domain::render::{RenderError, RenderTask, Renderer as _, RequestSigner, SlotHold, StageReporter};
use uuid::Uuid;

use crate::rig::{DecodedImage, Rig, request, task};
use crate::site::{Site, answer, html, svg};

/// Ways in which a page shows another document in a frame. `{denied}` is its URL.
const FRAMES: [(&str, &str); 12] = [
    ("iframe", "<iframe src='{denied}'></iframe>"),
    ("object", "<object data='{denied}' type='text/html' width=300 height=200></object>"),
    ("embed", "<embed src='{denied}' type='text/html'>"),
    ("frame in a frame", "<iframe srcdoc=\"<iframe src='{denied}'></iframe>\"></iframe>"),
    (
        "frame that a script adds",
        "<script>document.body.append(Object.assign(document.createElement('iframe'), { src: '{denied}' }))</script>",
    ),
    ("frame that a script navigates", "<iframe name=f></iframe><script>frames.f.location.href = '{denied}'</script>"),
    ("frame that navigates itself", "<iframe srcdoc=\"<script>location.replace('{denied}')</script>\"></iframe>"),
    ("frame with a refresh", "<iframe srcdoc=\"<meta http-equiv=refresh content='0;url={denied}'>\"></iframe>"),
    (
        "form in a frame",
        "<iframe name=f></iframe><form method=post target=f action='{denied}'></form><script>document.forms[0].submit()</script>",
    ),
    (
        "link to a frame",
        "<iframe name=f></iframe><a target=f href='{denied}'>x</a><script>document.querySelector('a').click()</script>",
    ),
    ("sandboxed frame", "<iframe sandbox src='{denied}'></iframe>"),
    ("written frame", "<script>document.write(\"<iframe src='{denied}'></iframe>\")</script>"),
];

fn rules(rule: DomainRule) -> Arc<DomainRules> {
    Arc::new([(Domain::parse("example.com").unwrap(), rule)].into_iter().collect())
}

/// A capture of the caller's own HTML on a domain of `example.com`, which alone is allowed. Sites of these tests have
/// addresses, which are of no domain.
fn own_html(body: &str) -> RenderTask {
    let asked = CaptureRequest {
        html: Some(Secret(format!("<!doctype html><body style='margin:0;background:lime'><p>Content.{body}"))),
        base_url: Some("http://www.example.com/".to_owned()),
        ..CaptureRequest::default()
    };
    RenderTask {
        id: GrabId(Uuid::nil()),
        spec: CaptureSpec::parse(&asked).unwrap(),
        budget: Duration::from_secs(25),
        alone: false,
        stages: StageReporter::default(),
        slot: SlotHold::default(),
        domains: rules(DomainRule::Allow),
        signer: RequestSigner::default(),
        proxy: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn denied_documents_in_frames_are_not_requested_and_told() {
    let site = Site::start(2, [("/denied", html("<body style='background:red'>"))]).await;
    let rig = Rig::start().await;
    let denied = site.url("/denied");
    for (what, body) in FRAMES {
        let task = own_html(&body.replace("{denied}", &denied));
        // Without rules, the document is requested.
        let free = RenderTask { domains: Arc::default(), ..task.clone() };
        let before = site.all_hits();
        rig.chromium.render(free).await.unwrap();
        assert!(site.all_hits() > before, "{what}: not requested without rules");

        let before = site.all_hits();
        let image = DecodedImage::from(rig.chromium.render(task).await.unwrap());
        assert_eq!(site.all_hits(), before, "{what}: a denied document was requested");
        assert_eq!(image.colour(1200, 700), "lime", "{what}");
        let warnings = &image.metadata.warnings;
        let told = warnings.iter().any(|warning| matches!(warning, Warning::DocumentsDenied(1..)));
        assert!(told, "{what}: {warnings:?}");
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn denied_main_documents_are_not_requested() {
    let site = Site::start(2, [("/denied", html("<body style='background:red'>"))]).await;
    let rig = Rig::start().await;
    for (what, body) in [
        ("script", "<script>location.href = '{denied}'</script>"),
        ("refresh", "<meta http-equiv=refresh content='0;url={denied}'>"),
        ("form", "<form method=post action='{denied}'></form><script>document.forms[0].submit()</script>"),
        ("frame", "<iframe srcdoc=\"<script>top.location.href = '{denied}'</script>\"></iframe>"),
    ] {
        let ended = rig.chromium.render(own_html(&body.replace("{denied}", &site.url("/denied")))).await;
        let Err(RenderError::Page { failure, .. }) = ended else { panic!("{what} was captured") };
        assert_eq!(failure.reason, FailureReason::RenderBlocked, "{what}: {failure:?}");
        assert!(failure.message.contains("domain that this service does not capture"), "{what}: {failure:?}");
    }
    assert_eq!(site.all_hits(), 0);
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_apply_to_documents_and_not_to_what_they_load() {
    let site = Site::start(2, [("/i.svg", svg("blue")), ("/to-denied", html("x"))]).await;
    let rig = Rig::start().await;
    let body = format!("<img src='{}' style='position:absolute;top:0;left:0'>", site.url("/i.svg"));
    let image = DecodedImage::from(rig.chromium.render(own_html(&body)).await.unwrap());
    assert_eq!((image.colour(50, 50), site.hits("/i.svg"), &*image.metadata.warnings), ("blue", 1, &[][..]));

    // A redirect of an allowed document to a denied one: the second request is not sent.
    let through = site.url("/to?http://www.example.com:81/");
    let redirected = RenderTask { domains: rules(DomainRule::Deny), ..task(request(&through)) };
    let Err(RenderError::Page { failure, metadata }) = rig.chromium.render(redirected).await else {
        panic!("the redirect was captured")
    };
    assert_eq!((failure.reason, metadata.blocked_requests), (FailureReason::RenderBlocked, 0), "{failure:?}");
    assert!(failure.message.contains("domain"), "{failure:?}");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_in_frames_whose_sites_opt_out_are_not_shown() {
    let red = |headers: &str| answer("200 OK", headers, "<body style='background:red'>");
    let site = Site::start(
        2,
        [
            ("/out", red("Content-Type: text/html\r\nX-Robots-Tag: noarchive")),
            ("/in", html("<body style='margin:0;background:blue'>")),
        ],
    )
    .await;
    let rig = Rig::with(&[2], |options| options.respect_opt_out = true).await;
    let frame = |path: &str| {
        let style = "position:absolute;top:100px;left:0;width:300px;height:200px;border:0";
        let task = own_html(&format!("<iframe src='{}' style='{style}'></iframe>", site.url(path)));
        RenderTask { domains: Arc::default(), ..task }
    };
    for path in ["/out", "/to?/out"] {
        let image = DecodedImage::from(rig.chromium.render(frame(path)).await.unwrap());
        assert_ne!(image.colour(150, 200), "red", "{path}");
        assert!(
            image.metadata.warnings.contains(&Warning::DocumentsDenied(1)),
            "{path}: {:?}",
            image.metadata.warnings
        );
    }
    let image = DecodedImage::from(rig.chromium.render(frame("/in")).await.unwrap());
    assert_eq!((image.colour(150, 200), &*image.metadata.warnings), ("blue", &[][..]));
    // The main document fails with its own message, as before.
    rig.fails_with(&site.url("/out"), FailureReason::RenderBlocked, "X-Robots-Tag").await;
    rig.chromium.shutdown().await;
}
