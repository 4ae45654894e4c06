//! Pages with hundreds of workers that never stop.

use serde_json::json;

use crate::hostile_tenants::kind::Kind;

pub(in crate::hostile_tenants) const KIND: Kind =
    Kind::new("workers", "captures a page with 500 busy workers", |field, team| {
        Box::pin(field.capture(team, "/hostile/busy-worker-swarm", json!({})))
    });
