//! Section `security`.

use serde::Deserialize;

/// Section `security`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Security {
    pub require_second_factor_for_operators: bool,
}
