//! Pages whose script never ends.

use serde_json::json;

use crate::hostile_tenants::kind::Kind;

pub(in crate::hostile_tenants) const KIND: Kind =
    Kind::new("busy-page", "captures a page whose script never ends", |field, team| {
        Box::pin(field.capture(team, "/hostile/busy-later", json!({})))
    });
