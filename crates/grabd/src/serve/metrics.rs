//! `/metrics` on its own listener, in the text format of OpenMetrics 1.0.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use grabd_browser::Chromium;
use grabd_edge::allow_methods;
use grabd_engine::Core;
use grabd_engine::admission::{Pressure, QueuePressure};
use grabd_rpc::direct_uploads::{DirectUploadCounts, DirectUploads};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use serde_json::json;

/// The media type of OpenMetrics 1.0.
const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Why browsers are replaced.
const RESTART_REASONS: [&str; 7] = ["age", "died", "excess", "grabs", "hung", "memory", "stuck"];

const METHODS: &str = "GET, HEAD, OPTIONS";

struct MetricsState {
    registry: Registry,
    core: Core,
}

/// `/metrics` and `/pressure`. Not for a public listener, since they reveal the load of the service.
pub(super) fn router(core: Core, browser: Option<Chromium>) -> Router {
    let mut registry = Registry::with_prefix("grabd");
    core.register_metrics(&mut registry);
    if let Some(browser) = browser {
        registry.register_collector(Box::new(BrowserCollector(browser)));
    }
    Router::new()
        .route("/metrics", allow_methods(METHODS, get(render)))
        .route("/pressure", allow_methods(METHODS, get(pressure)))
        .with_state(Arc::new(MetricsState { registry, core }))
}

/// `/metrics` of a renderer.
pub(super) fn renderer_router(browser: Chromium, uploads: Arc<DirectUploads>) -> Router {
    let mut registry = Registry::with_prefix("grabd");
    registry.register_collector(Box::new(BrowserCollector(browser)));
    registry.register_collector(Box::new(UploadCollector(uploads)));
    let registry = Arc::new(registry);
    let render = move || {
        let registry = Arc::clone(&registry);
        async move { to_text(&registry) }
    };
    Router::new().route("/metrics", allow_methods(METHODS, get(render)))
}

async fn render(State(parts): State<Arc<MetricsState>>) -> Response {
    if let Err(error) = parts.core.refresh_metrics().await {
        // Without this, stale gauges would look like an idle service.
        tracing::warn!(%error, "metrics could not be read from the database");
        return (StatusCode::SERVICE_UNAVAILABLE, "the database does not respond\n").into_response();
    }
    to_text(&parts.registry)
}

/// How busy the slots are, for what starts and stops renderers.
async fn pressure(State(parts): State<Arc<MetricsState>>) -> Response {
    let Pressure { slots, free, sync, r#async } = match parts.core.pressure().await {
        Ok(pressure) => pressure,
        Err(error) => {
            tracing::warn!(%error, "the queue could not be read from the database");
            return (StatusCode::SERVICE_UNAVAILABLE, "the database does not respond\n").into_response();
        }
    };
    let queue = |QueuePressure { waiting, expected_wait }| json!({ "waiting": waiting, "expected_wait_seconds": expected_wait.as_secs_f64() });
    let body = json!({ "slots": slots, "free": free, "sync": queue(sync), "async": queue(r#async) });
    ([(CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

fn to_text(registry: &Registry) -> Response {
    let mut text = String::new();
    match encode(&mut text, registry) {
        Ok(()) => ([(CONTENT_TYPE, TEXT), (CACHE_CONTROL, "no-store")], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics could not be encoded");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Reads the browser's health at each scrape.
struct BrowserCollector(Chromium);

impl fmt::Debug for BrowserCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BrowserCollector")
    }
}

impl Collector for BrowserCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let health = self.0.health();
        let memory = "Memory that ending the browsers would release, updated every second";
        let gauges = [
            ("browsers", "Running browsers, including one that is being replaced", None, health.browsers() as u64),
            ("browser_processes", "Processes of all browsers, updated every second", None, health.processes as u64),
            ("browser_memory", memory, Some(&Unit::Bytes), health.memory_bytes),
            ("browser_contexts_ready", "Prepared contexts", None, health.ready_contexts as u64),
            ("slots_free", "Free slots", None, health.free_slots as u64),
        ];
        for (name, help, unit, value) in gauges {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, unit, gauge.metric_type())?)?;
        }
        let counter = ConstCounter::new(0_u64);
        let help = "Replaced browsers, by reason";
        let mut family = encoder.encode_descriptor("browser_restarts", help, None, counter.metric_type())?;
        // An increase from an absent sample is none, so all reasons have one.
        let mut restarts = BTreeMap::from(RESTART_REASONS.map(|reason| (reason, 0)));
        restarts.extend(health.restarts);
        for (reason, count) in restarts {
            ConstCounter::new(count).encode(family.encode_family(&[("reason", reason)])?)?;
        }
        Ok(())
    }
}

/// Reads what became of a renderer's uploads at each scrape.
#[derive(Debug)]
struct UploadCollector(Arc<DirectUploads>);

impl Collector for UploadCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let DirectUploadCounts { stored, failed, skipped } = self.0.counts();
        let counter = ConstCounter::new(0_u64);
        let help = "Images that could be uploaded to the object store, by what became of that: stored, or sent to a core \
                    because it failed or had failed shortly before";
        let mut family = encoder.encode_descriptor("direct_uploads", help, None, counter.metric_type())?;
        for (result, count) in [("stored", stored), ("failed", failed), ("skipped", skipped)] {
            ConstCounter::new(count).encode(family.encode_family(&[("result", result)])?)?;
        }
        Ok(())
    }
}
