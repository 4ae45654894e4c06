//! Dialogs that ask for consent to cookies: those of vendors whose rules autoconsent has, and those of nobody it knows.

use grabd_domain::capture::CaptureRequest;
use grabd_domain::grabs::{Consent, ConsentResult, RenderMetadata};

use crate::rig::{DecodedImage, Rig, request};
use crate::site::{Reply, Site, answer, html};

/// Pages with the dialogs of vendors: what their rules look for, and what a click on its buttons does. A click on a button
/// sets the title to `rejected` or `accepted`.
const VENDORS: [(&str, &str, &str); 17] = [
    ("/axeptio", "axeptio", include_str!("dialogs/axeptio.html")),
    ("/civic", "civic-cookie-control", include_str!("dialogs/civic.html")),
    ("/complianz", "complianz banner", include_str!("dialogs/complianz.html")),
    ("/cookiebot", "cybotcookiebot", include_str!("dialogs/cookiebot.html")),
    ("/cookieconsent", "cookieconsent3", include_str!("dialogs/cookieconsent.html")),
    ("/cookieyes", "cookieyes", include_str!("dialogs/cookieyes.html")),
    ("/didomi", "didomi", include_str!("dialogs/didomi.html")),
    ("/hubspot", "hubspot", include_str!("dialogs/hubspot.html")),
    ("/iubenda", "iubenda", include_str!("dialogs/iubenda.html")),
    ("/klaro", "klaro", include_str!("dialogs/klaro.html")),
    ("/onetrust", "onetrust", include_str!("dialogs/onetrust.html")),
    ("/osano", "osano", include_str!("dialogs/osano.html")),
    ("/quantcast", "quantcast", include_str!("dialogs/quantcast.html")),
    ("/sourcepoint", "sourcepoint-frame", include_str!("dialogs/sourcepoint.html")),
    ("/termly", "termly", include_str!("dialogs/termly.html")),
    ("/trustarc", "trustarc-top", include_str!("dialogs/trustarc.html")),
    ("/usercentrics", "usercentrics-api", include_str!("dialogs/usercentrics.html")),
];

/// A dialog whose button does nothing.
const BROKEN: &str = "<!doctype html><title>A page</title><style>body{margin:0}</style><p>Content of the page.
    <div id=qc-cmp2-container><div id=qc-cmp2-ui style='position:fixed;left:0;right:0;bottom:0;height:240px;background:red'>
    We value your privacy.</div></div>";

fn without_banners(url: &str) -> CaptureRequest {
    CaptureRequest { block: Some(vec!["cookie_banners".to_owned()]), ..request(url) }
}

fn has_dialog(image: &DecodedImage) -> bool {
    image.colour(1200, 700) == "red"
}

fn consent(metadata: &RenderMetadata) -> Option<(&str, ConsentResult)> {
    metadata.findings.consent.as_ref().map(|Consent { cmp, result }| (cmp.as_str(), *result))
}

#[tokio::test(flavor = "multi_thread")]
async fn consent_is_refused_in_dialogs_of_vendors() {
    let frame = ("/index.html", html(include_str!("dialogs/sourcepoint_frame.html")));
    // A frame of another site, as most of these.
    let frames = Site::start(3, [frame]).await;
    let frame_url = frames.url("/index.html?message_id=1");
    let pages = VENDORS.map(|(path, _, page)| (path, html(page.replace("FRAME", &frame_url))));
    let site = Site::start(2, pages).await;
    let rig = Rig::with(&[2, 3], |_| {}).await;
    let mut wrong = Vec::new();
    for (path, cmp, _) in VENDORS {
        let plain = rig.grab(&site.url(path)).await;
        assert!(has_dialog(&plain) && consent(&plain.metadata).is_none(), "{path} without the option");
        let image = rig.capture(without_banners(&site.url(path))).await;
        let title = image.metadata.page.title.as_deref();
        let found = consent(&image.metadata);
        if has_dialog(&image) || found != Some((cmp, ConsentResult::Rejected)) || title != Some("rejected") {
            wrong.push(format!("{path}: {found:?}, {title:?}, dialog: {}", has_dialog(&image)));
        }
    }
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), VENDORS.len());
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dialogs_without_a_rule_are_refused_or_hidden_and_others_stay() {
    let strict = "Content-Type: text/html\r\nContent-Security-Policy: style-src 'self'; script-src 'none'";
    let unknown = include_str!("dialogs/unknown_without_reject.html");
    // Its policy allows no inline styles, so the dialog has no style of its own but for its attributes.
    let bare = "<!doctype html><body bgcolor=red><dialog open><p>We use cookies.</p><button>Accept</button></dialog>";
    let stubborn = format!(
        "{unknown}<script>const banner = document.querySelector('.dialog');
        setInterval(() => banner.style.setProperty('display', 'block', 'important'), 1)</script>"
    );
    let pages: [(&str, Reply); 7] = [
        ("/reject", html(include_str!("dialogs/unknown_with_reject.html"))),
        ("/stubborn", html(stubborn)),
        ("/accept", html(unknown)),
        ("/newsletter", html(include_str!("dialogs/no_dialog.html"))),
        ("/broken", html(BROKEN)),
        ("/none", html("<!doctype html><body style='margin:0;background:lime'><p>We use cookies in our recipes.")),
        ("/strict", answer("200 OK", strict, bare)),
    ];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    for (path, expected, title, stays) in [
        ("/reject", Some(("unknown", ConsentResult::Rejected)), Some("rejected"), false),
        // Nothing is accepted.
        ("/accept", Some(("unknown", ConsentResult::Hidden)), Some("A page"), false),
        ("/stubborn", Some(("unknown", ConsentResult::Hidden)), Some("A page"), false),
        ("/newsletter", None, Some("A page"), true),
        ("/broken", Some(("quantcast", ConsentResult::Hidden)), Some("A page"), false),
        ("/none", None, None, false),
    ] {
        let image = rig.capture(without_banners(&site.url(path))).await;
        assert_eq!(consent(&image.metadata), expected, "{path}");
        assert_eq!((image.metadata.page.title.as_deref(), has_dialog(&image)), (title, stays), "{path}");
    }
    let hidden = rig.capture(without_banners(&site.url("/strict"))).await;
    assert_eq!(consent(&hidden.metadata), Some(("unknown", ConsentResult::Hidden)), "with a content security policy");
    // The page's own scripts do not run, and the dialog is in its source.
    let still = CaptureRequest { javascript: Some(false), ..without_banners(&site.url("/accept")) };
    let still = rig.capture(still).await;
    assert_eq!((consent(&still.metadata), has_dialog(&still)), (Some(("unknown", ConsentResult::Hidden)), false));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_cannot_see_or_forge_the_removal_of_dialogs() {
    let page = "<!doctype html><body style='margin:0;background:lime'><p>Content of the page, and nothing else.
        <script>const before = Object.getOwnPropertyNames(window).length;
        window.consent = { take: () => [{ type: 'autoconsentDone', cmp: 'forged' }], hideDialogs: () => true };
        window.autoconsentReceiveMessage = () => { document.body.style.background = 'red' };
        setInterval(() => {
            if (Object.getOwnPropertyNames(window).length > before + 3) document.body.style.background = 'red' }, 10)
        </script>";
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let image = rig.capture(without_banners(&site.url("/"))).await;
    assert_eq!((consent(&image.metadata), image.colour(1200, 700)), (None, "lime"));
    rig.chromium.shutdown().await;
}
