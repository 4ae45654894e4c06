//! What monitoring reads: `/metrics` on a listener of its own, in the text format of OpenMetrics 1.0.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use grabd_browser::Chromium;
use grabd_edge::only;
use grabd_engine::Core;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

/// The media type that OpenMetrics 1.0 asks for.
const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

struct Parts {
    registry: Registry,
    core: Core,
}

/// `/metrics`. Not for a public listener: it tells how busy the service is.
pub(super) fn router(core: Core, browser: Chromium) -> Router {
    let mut registry = Registry::with_prefix("grabd");
    core.register_metrics(&mut registry);
    registry.register_collector(Box::new(Browsers(browser)));
    Router::new()
        .route("/metrics", only("GET, HEAD, OPTIONS", get(tell)))
        .with_state(Arc::new(Parts { registry, core }))
}

async fn tell(State(parts): State<Arc<Parts>>) -> Response {
    if let Err(error) = parts.core.refresh_metrics().await {
        // Old gauges would look like a calm service.
        tracing::warn!(%error, "metrics could not be read from the database");
        return (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n").into_response();
    }
    let mut text = String::new();
    match encode(&mut text, &parts.registry) {
        Ok(()) => ([(CONTENT_TYPE, TEXT), (CACHE_CONTROL, "no-store")], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// The browser's health, read when it is asked for.
struct Browsers(Chromium);

impl fmt::Debug for Browsers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Browsers")
    }
}

impl Collector for Browsers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let health = self.0.health();
        let memory = "Memory that would come free with the browsers' end, as seen within the last second";
        let gauges = [
            ("browsers", "Browsers that run: one, more while one replaces another", None, health.browsers() as u64),
            ("browser_processes", "Processes of all browsers, as of the last second", None, health.processes as u64),
            ("browser_memory", memory, Some(&Unit::Bytes), health.memory_bytes),
            ("browser_contexts_ready", "Contexts that wait for a grab", None, health.ready_contexts as u64),
            ("slots_free", "Slots that wait for a grab", None, health.free_slots as u64),
        ];
        for (name, help, unit, value) in gauges {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, unit, gauge.metric_type())?)?;
        }
        let counter = ConstCounter::new(0_u64);
        let help = "Browsers that were replaced, by reason";
        let mut family = encoder.encode_descriptor("browser_restarts", help, None, counter.metric_type())?;
        for (reason, count) in &health.restarts {
            ConstCounter::new(*count).encode(family.encode_family(&[("reason", *reason)])?)?;
        }
        Ok(())
    }
}
