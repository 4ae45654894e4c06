//! The stages of a render.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::words::stage_schema;

/// A stage that the render of a grab has reached.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StageReached<'a> {
    /// The page is requested (`navigating`), its load event has fired (`loaded`), it is waited for until nothing would
    /// change its image (`settling`), or the image was taken (`captured`). Later versions may add stages.
    #[schema(schema_with = stage_schema)]
    pub stage: Cow<'a, str>,
    /// Milliseconds since the start of the attempt.
    #[schema(minimum = 0)]
    pub ms: u32,
}
