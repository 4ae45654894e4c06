//! Section `docs`.

use serde::Deserialize;

/// Section `docs`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Docs {
    pub self_hosting: SelfHosting,
}

/// Whether customers see the documentation about running the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub enum SelfHosting {
    Show,
    Hide,
}
