//! All channels through the whole service: no canary is hit, and the proxy has refused the requests.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use futures::stream::{self, StreamExt, TryStreamExt};
use grabd_tests::harness::TestApp;
use grabd_tests::hostile::channels::CHANNELS;
use grabd_tests::hostile::{Channel, HostileSite, file_content};
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context as Events, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Concurrent captures.
pub(super) const AT_A_TIME: usize = 3;

/// Parts per page: as many as do not interfere with each other.
const PARTS: usize = 12;

/// Some channels start after the page has loaded.
const DELAY_MS: u32 = 1200;

/// One page per channel that needs its own, and one per dozen of the others.
pub(super) fn pages(channels: &'static [Channel]) -> Vec<Vec<&'static Channel>> {
    let (channels, own): (Vec<_>, Vec<_>) = channels.iter().partition(|channel| channel.is_part());
    let own = own.into_iter().map(|channel| vec![channel]);
    channels.chunks(PARTS).map(<[_]>::to_vec).chain(own).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_channel_reaches_its_canary() -> Result<()> {
    let refused = RefusedPorts::capture();
    let files = tempfile::tempdir()?;
    std::fs::set_permissions(files.path(), PermissionsExt::from_mode(0o755))?;
    let hostile = HostileSite::start(CHANNELS, &format!("file://{}", files.path().display())).await?;
    for channel in CHANNELS.iter().filter(|channel| channel.name.starts_with("file-")) {
        for kind in ["html", "js", "css"] {
            let url = format!("http://{}/", hostile.canaries.address(channel.name));
            let path = files.path().join(format!("{}.{kind}", channel.name));
            std::fs::write(&path, file_content(kind, &url))?;
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644))?;
        }
    }
    let app = TestApp::start(1000, &[]).await?;
    let mut wrong = capture_all(&app, &hostile, CHANNELS).await?;
    // Requests in progress end with the browser.
    app.finish().await?;
    wrong.extend(refused.missed(&hostile, CHANNELS));
    assert!(hostile.canaries.hits().is_empty(), "canaries were hit: {:?}", hostile.canaries.hits());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Captures all pages. Returns what is wrong with the responses.
pub(super) async fn capture_all(
    app: &TestApp,
    hostile: &HostileSite,
    channels: &'static [Channel],
) -> Result<Vec<String>> {
    let grabs = stream::iter(pages(channels)).map(async |channels| {
        let names: Vec<_> = channels.iter().map(|channel| channel.name).collect();
        let (status, answer) = app.create(json!({ "url": hostile.url(&names), "delay_ms": DELAY_MS })).await?;
        Ok::<_, anyhow::Error>(check_response(&channels, status, &answer))
    });
    grabs.buffer_unordered(AT_A_TIME).try_concat().await
}

/// What is wrong with the response for a page.
fn check_response(channels: &[&Channel], status: u16, answer: &Value) -> Vec<String> {
    let names = || channels.iter().map(|channel| channel.name).collect::<Vec<_>>().join("+");
    let code = answer["error"]["code"].as_str();
    match channels {
        [document] if document.is_document() => match (status, code) {
            (400, Some("ssrf_detected")) => Vec::new(),
            (_, _) => vec![format!("{}: {status} {answer}", document.name)],
        },
        channels => {
            let expected = usize::from(channels.iter().any(|part| part.no_request.is_none()));
            let blocked = answer["blocked_requests"].as_u64().unwrap_or_default();
            match (status, answer["status"].as_str()) {
                (200, Some("done")) if blocked >= expected as u64 => Vec::new(),
                (_, _) => vec![format!("{}: {status}, {blocked} blocked, {answer}", names())],
            }
        }
    }
}

/// The target ports that the proxy has refused, from its log.
#[derive(Clone, Default)]
pub(super) struct RefusedPorts(Arc<Mutex<BTreeSet<u16>>>);

impl RefusedPorts {
    /// Collects ports from the log of this process from now on.
    pub(super) fn capture() -> Self {
        let refused = Self::default();
        tracing_subscriber::registry().with(refused.clone()).init();
        refused
    }

    /// Channels that the proxy should have refused and did not, if there are many. A few start so late that a busy
    /// machine captures the page first.
    pub(super) fn missed(&self, hostile: &HostileSite, channels: &[Channel]) -> Vec<String> {
        let refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        println!("{} channels, of which the proxy refused {}", channels.len(), refused.len());
        let expected = channels.iter().filter(|channel| channel.no_request.is_none() && channel.no_control.is_none());
        let is_missed = |channel: &&Channel| !refused.contains(&hostile.canaries.address(channel.name).port());
        let missed: Vec<_> = expected.filter(is_missed).map(|channel| channel.name).collect();
        println!("not requested: {missed:?}");
        match missed.len() * 10 > channels.len() {
            true => missed.into_iter().map(|name| format!("{name}: not requested")).collect(),
            false => Vec::new(),
        }
    }
}

impl<S: tracing::Subscriber> Layer<S> for RefusedPorts {
    fn on_event(&self, event: &tracing::Event<'_>, _: Events<'_, S>) {
        if event.metadata().target() == "grabd_browser::proxy::unreached" {
            event.record(&mut Port(self));
        }
    }
}

struct Port<'a>(&'a RefusedPorts);

impl Visit for Port<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "port"
            && let Ok(port) = u16::try_from(value)
        {
            self.0.0.lock().unwrap_or_else(PoisonError::into_inner).insert(port);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}
