//! Every channel, through a whole service: the canaries are never hit, and the proxy is known to have said no.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use futures::stream::{self, StreamExt, TryStreamExt};
use grabd_tests::harness::Harness;
use grabd_tests::hostile::channels::CHANNELS;
use grabd_tests::hostile::{Channel, Hostile, file_content};
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context as Events, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Pages visited at a time.
pub(super) const AT_A_TIME: usize = 3;

/// Parts on one page: as many as do not get into each other's way.
const PARTS: usize = 12;

/// Some channels begin after the page has loaded.
const DELAY_MS: u32 = 1200;

/// One page for every channel that needs its own, one for some dozen of the others.
pub(super) fn pages(channels: &'static [Channel]) -> Vec<Vec<&'static Channel>> {
    let (parts, own): (Vec<_>, Vec<_>) = channels.iter().partition(|channel| channel.is_part());
    let own = own.into_iter().map(|channel| vec![channel]);
    parts.chunks(PARTS).map(<[_]>::to_vec).chain(own).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_hostile_page_reaches_its_canary() -> Result<()> {
    let refused = Refused::listen();
    let files = tempfile::tempdir()?;
    std::fs::set_permissions(files.path(), PermissionsExt::from_mode(0o755))?;
    let hostile = Hostile::start(CHANNELS, &format!("file://{}", files.path().display())).await?;
    for channel in CHANNELS.iter().filter(|channel| channel.name.starts_with("file-")) {
        for kind in ["html", "js", "css"] {
            let url = format!("http://{}/", hostile.canaries.address(channel.name));
            let path = files.path().join(format!("{}.{kind}", channel.name));
            std::fs::write(&path, file_content(kind, &url))?;
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644))?;
        }
    }
    let harness = Harness::start(1000, &[]).await?;
    let mut wrong = visit(&harness, &hostile, CHANNELS).await?;
    // With the browser, whatever a page still had under way is over.
    harness.finish().await?;
    wrong.extend(refused.wrong(&hostile, CHANNELS));
    assert!(hostile.canaries.hits().is_empty(), "canaries were hit: {:?}", hostile.canaries.hits());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Captures every page; what is wrong with the answers.
pub(super) async fn visit(harness: &Harness, hostile: &Hostile, channels: &'static [Channel]) -> Result<Vec<String>> {
    let grabs = stream::iter(pages(channels)).map(async |channels| {
        let names: Vec<_> = channels.iter().map(|channel| channel.name).collect();
        let (status, answer) = harness.create(json!({ "url": hostile.url(&names), "delay_ms": DELAY_MS })).await?;
        Ok::<_, anyhow::Error>(judge(&channels, status, &answer))
    });
    grabs.buffer_unordered(AT_A_TIME).try_concat().await
}

/// What is wrong with the answer for a page.
fn judge(channels: &[&Channel], status: u16, answer: &Value) -> Vec<String> {
    let names = || channels.iter().map(|channel| channel.name).collect::<Vec<_>>().join("+");
    let code = answer["error"]["code"].as_str();
    match channels {
        [document] if document.is_document() => match (status, code) {
            (400, Some("ssrf_detected")) => Vec::new(),
            (_, _) => vec![format!("{}: {status} {answer}", document.name)],
        },
        parts => {
            let expected = usize::from(parts.iter().any(|part| part.silenced.is_none()));
            let blocked = answer["blocked_requests"].as_u64().unwrap_or_default();
            match (status, answer["status"].as_str()) {
                (200, Some("done")) if blocked >= expected as u64 => Vec::new(),
                (_, _) => vec![format!("{}: {status}, {blocked} blocked, {answer}", names())],
            }
        }
    }
}

/// The ports of targets that the proxy refused, as its log tells an operator.
#[derive(Clone, Default)]
pub(super) struct Refused(Arc<Mutex<BTreeSet<u16>>>);

impl Refused {
    /// Reads the log of this process from now on.
    pub(super) fn listen() -> Self {
        let refused = Self::default();
        tracing_subscriber::registry().with(refused.clone()).init();
        refused
    }

    /// Channels that the proxy should have heard of and did not, when these are more than a few: some begin so late that a
    /// busy machine takes the picture first.
    pub(super) fn wrong(&self, hostile: &Hostile, channels: &[Channel]) -> Vec<String> {
        let refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        println!("{} channels, of which the proxy refused {}", channels.len(), refused.len());
        let expected = channels.iter().filter(|channel| channel.silenced.is_none() && channel.uncontrolled.is_none());
        let is_missed = |channel: &&Channel| !refused.contains(&hostile.canaries.address(channel.name).port());
        let missed: Vec<_> = expected.filter(is_missed).map(|channel| channel.name).collect();
        println!("not asked for: {missed:?}");
        match missed.len() * 10 > channels.len() {
            true => missed.into_iter().map(|name| format!("{name}: not asked for")).collect(),
            false => Vec::new(),
        }
    }
}

impl<S: tracing::Subscriber> Layer<S> for Refused {
    fn on_event(&self, event: &tracing::Event<'_>, _: Events<'_, S>) {
        if event.metadata().target() == "grabd_browser::proxy::attempts" {
            event.record(&mut Port(self));
        }
    }
}

struct Port<'a>(&'a Refused);

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
