//! Pages that never answer. They keep slots busy, and nothing else.

use serde_json::json;

use crate::hostile_tenants::kind::Kind;

/// A page that answers only when it is released, so that the service can be stopped quickly.
const HELD: &str = "/held/tiny";

pub(in crate::hostile_tenants) const KIND: Kind = Kind {
    release: |field| {
        Box::pin(async move {
            grabd_tests::client::client().build()?.post(field.site.url(HELD)).send().await?;
            Ok(())
        })
    },
    ..Kind::new("never-answers", "captures a page that never answers", |field, team| {
        Box::pin(field.capture(team, HELD, json!({ "width": 320, "height": 240 })))
    })
};
