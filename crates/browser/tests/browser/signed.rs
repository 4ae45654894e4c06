//! Requests for documents are signed in the name of the service, each for its own host and port. No others are.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use grabd_domain::Timestamp;
use grabd_domain::capture::{CaptureRequest, FileKind, OptionValue, Secret};
use grabd_domain::identity::{AgentUrl, SigningIdentity, SigningKey};
use grabd_domain::render::{RenderTask, Renderer as _, RequestSigner};
use ring::signature::{ED25519, UnparsedPublicKey};

use crate::rig::{DecodedImage, Rig, request, task};
use crate::site::{Site, answer, html, svg};

const NOW: Timestamp = Timestamp::from_ms(1_795_206_774_120);

/// Two square pages: the first is red above blue.
const LEAFLET: &[u8] = include_bytes!("../../../../tests/site/assets/leaflet.pdf");

fn identity() -> SigningIdentity {
    let agent = AgentUrl::parse("https://grabs.example.com").unwrap();
    SigningIdentity { agent, key: Arc::new(SigningKey::from_seed(&[7; 32]).unwrap()) }
}

/// Signs each request with a nonce of its own.
fn signed(request: CaptureRequest) -> RenderTask {
    let (identity, count) = (identity(), AtomicU64::new(0));
    let sign = move |url: &str| {
        let nonce = format!("nonce-{}", count.fetch_add(1, Ordering::Relaxed));
        identity.sign_request(url, NOW, &nonce)
    };
    RenderTask { signer: RequestSigner::new(sign), ..task(request) }
}

/// The value of a header field that a request has at most once.
fn field(head: &str, name: &str) -> Option<String> {
    let fields = head.lines().filter_map(|line| line.split_once(": "));
    let values: Vec<&str> =
        fields.filter(|(of, _)| of.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).collect();
    assert!(values.len() < 2, "{name} twice: {head}");
    values.first().map(|value| (*value).to_owned())
}

/// Checks a request as a site does, which knows the public key only: the signature is valid for the host that was asked. Returns
/// the `Signature-Input`. `None` if the request is not signed.
fn verified(head: &str) -> Option<String> {
    let fields = ["signature-agent", "signature-input", "signature"].map(|name| field(head, name));
    let [Some(agent), Some(input), Some(signature)] = &fields else {
        assert!(fields.iter().all(Option::is_none), "{head}");
        return None;
    };
    assert_eq!(agent, "sig1=\"https://grabs.example.com\"");
    let covered = input.strip_prefix("sig1=").unwrap();
    let expected = "(\"@authority\" \"signature-agent\";key=\"sig1\");created=1795206774;expires=1795206834;keyid=";
    assert!(covered.starts_with(expected) && covered.ends_with(";tag=\"web-bot-auth\""), "{covered}");
    let base = format!(
        "\"@authority\": {}\n\"signature-agent\";key=\"sig1\": \"https://grabs.example.com\"\n\"@signature-params\": {covered}",
        field(head, "host").unwrap()
    );
    let signature = signature.strip_prefix("sig1=:").and_then(|rest| rest.strip_suffix(':')).unwrap();
    let public_key = URL_SAFE_NO_PAD.decode(identity().key.public_key()).unwrap();
    let key = UnparsedPublicKey::new(&ED25519, public_key);
    assert!(key.verify(base.as_bytes(), &STANDARD.decode(signature).unwrap()).is_ok(), "made for another host: {head}");
    Some(input.clone())
}

/// A page with frames and resources. `{query}` is the origin of another site.
const PAGE: &str = "<!doctype html><body style='margin:0;background:lime'><p>Content.
    <iframe src='/own-frame'></iframe><iframe src='{query}/frame?{site}'></iframe>
    <iframe src='/to?{query}/frame-of-a-redirect'></iframe>
    <img src='/i.svg'><script src='/s.js'></script>
    <script>fetch('/api'); fetch('{query}/api', { headers: { 'x-custom': '1' } }).catch(() => {})</script>";

/// A frame with frames in it: one of another site, `{query}`, and one that a script leads to another document.
const FRAME: &str =
    "<img src='/in-frame.svg'><iframe src='{query}/inner-frame'></iframe><iframe src='/leading-frame'></iframe>";

/// The site of the page, and another one, to which redirects lead.
async fn sites() -> (Site, Site) {
    let script = || answer("200 OK", "Content-Type: text/javascript", "1");
    let open = "Content-Type: text/plain\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Allow-Headers: x-custom";
    let pages = || {
        [
            ("/", html(PAGE)),
            ("/own-frame", html("<img src='/in-frame.svg'>")),
            ("/frame", html(FRAME)),
            ("/inner-frame", html("<img src='/in-inner-frame.svg'>")),
            ("/leading-frame", html("<script>location.replace('/led-frame')</script>")),
            ("/led-frame", html("<p>x")),
            ("/in-inner-frame.svg", svg("blue")),
            ("/frame-of-a-redirect", html("<p>x")),
            ("/in-frame.svg", svg("blue")),
            ("/i.svg", svg("blue")),
            ("/s.js", script()),
            ("/api", answer("200 OK", open, "x")),
        ]
    };
    (Site::start(2, pages()).await, Site::start(3, pages()).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_redirects_and_frames_are_signed_for_their_hosts_and_resources_are_not() {
    let (first, second) = sites().await;
    let rig = Rig::with(&[2, 3], |_| {}).await;
    // The target redirects to the page on the other host, whose frames are of both.
    let target = first.url(&format!("/to?{}", second.url(&format!("/?{}", first.url("")))));
    let image = DecodedImage::from(rig.chromium.render(signed(request(&target))).await.unwrap());
    assert_eq!((image.colour(1200, 700), image.metadata.redirects), ("lime", Some(1)));

    let mut inputs = HashSet::new();
    for (site, path, expected) in [
        (&first, "/to", 1),
        (&second, "/", 1),
        (&second, "/own-frame", 1),
        (&first, "/frame", 1),
        (&second, "/inner-frame", 1),
        (&first, "/leading-frame", 1),
        (&first, "/led-frame", 1),
        (&second, "/to", 1),
        (&first, "/frame-of-a-redirect", 1),
    ] {
        let heads = site.sent_heads(path);
        assert_eq!(heads.len(), expected, "{path}: {heads:?}");
        for head in heads {
            let input = verified(&head).unwrap_or_else(|| panic!("{path} is not signed: {head}"));
            assert!(inputs.insert(input), "{path} has the signature of another request");
        }
    }
    for (site, path) in [
        (&second, "/i.svg"),
        (&second, "/s.js"),
        (&second, "/api"),
        (&first, "/api"),
        (&first, "/in-frame.svg"),
        (&second, "/in-inner-frame.svg"),
    ] {
        let heads = site.sent_heads(path);
        assert!(!heads.is_empty() && heads.iter().all(|head| verified(head).is_none()), "{path}: {heads:?}");
    }
    // What a page must ask for before it may send a request is what the page added.
    let asked = first.sent_heads("/api").into_iter().find(|head| head.starts_with("OPTIONS")).unwrap();
    assert_eq!(field(&asked, "access-control-request-headers").as_deref(), Some("x-custom"));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_by_default() {
    let (first, second) = sites().await;
    let rig = Rig::with(&[2, 3], |_| {}).await;
    let target = first.url(&format!("/to?{}", second.url(&format!("/?{}", first.url("")))));
    assert_eq!(rig.grab(&target).await.colour(1200, 700), "lime");
    for site in [&first, &second] {
        assert!(site.all_hits() > 2 && !site.all_heads().contains("\nsignature"), "{}", site.all_heads());
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_of_the_caller_are_sent_beside_the_signature_and_archives_do_not_show_it() {
    let (site, _) = sites().await;
    let rig = Rig::start().await;
    let token = ("X-Token".to_owned(), OptionValue::Text("hidden-1".to_owned()));
    let asked = CaptureRequest {
        headers: Some(Secret([token].into())),
        also: Some(vec![FileKind::Har.as_str().into()]),
        ..request(&site.url("/"))
    };
    let capture = rig.chromium.render(signed(asked)).await.unwrap();
    let head = &site.sent_heads("/")[0];
    assert!(verified(head).is_some() && head.to_ascii_lowercase().contains("x-token: hidden-1"), "{head}");
    let signature = field(head, "signature").unwrap();
    let archive = String::from_utf8_lossy(&capture.files[0].content).into_owned();
    assert!(archive.contains("/own-frame") && !archive.contains(&signature), "{archive}");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pdf_is_signed_both_times_that_it_is_requested() {
    let site = Site::start(2, [("/a.pdf", answer("200 OK", "Content-Type: application/pdf", LEAFLET))]).await;
    let rig = Rig::start().await;
    let image = DecodedImage::from(rig.chromium.render(signed(request(&site.url("/a.pdf")))).await.unwrap());
    assert_eq!(image.colour(640, 5), "red");
    let heads = site.sent_heads("/a.pdf");
    assert_eq!(heads.iter().filter_map(|head| verified(head)).count(), 2, "{heads:?}");
    rig.chromium.shutdown().await;
}
