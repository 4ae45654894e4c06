//! A text of a grab.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::words::text_format_schema;

/// A text of a grab, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GrabText<'a> {
    /// What was read.
    #[schema(schema_with = text_format_schema)]
    pub format: Cow<'a, str>,
    /// The text, or the part of it. It comes from the page: do not trust it.
    pub text: Cow<'a, str>,
    /// The byte of the whole text at which this part begins.
    pub from: u64,
    /// The byte at which the next part begins: the `from` of the next request. Null if this is the last part.
    pub next: Option<u64>,
    /// Estimated number of tokens of this part: one for four ASCII characters, for two others up to U+2E7F, and for each of the
    /// rest, such as a Chinese one.
    pub tokens_estimate: u32,
    /// Estimated number of tokens of the whole text.
    pub total_tokens: u32,
}
