//! The credits, the plan and the usage of a team.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::words::environment_schema;

/// Balance and usage of a team.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Usage<'a> {
    /// Remaining credits.
    #[schema(inline)]
    pub credits: Credits,
    /// Plan of the team.
    #[schema(inline)]
    pub plan: Plan<'a>,
    /// Grabs of the last 30 days.
    #[schema(inline)]
    pub usage: Counts,
    /// Environment of the key.
    #[schema(schema_with = environment_schema)]
    pub environment: Cow<'a, str>,
    /// URL at which to buy credits.
    pub top_up: Cow<'a, str>,
}

// The structs below have no doc comments: those would be second descriptions in the schema, beside those of the members.

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Credits {
    /// Remaining credits of the annual subscription.
    pub subscription: i64,
    /// Remaining prepaid credits.
    pub prepaid: i64,
    /// All remaining credits.
    pub total: i64,
    /// Credits held for open live grabs; not included in the other numbers.
    #[serde(default)]
    #[schema(required)]
    pub held: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Plan<'a> {
    /// Name of the plan.
    pub name: Cow<'a, str>,
    /// Status of the plan.
    pub status: Cow<'a, str>,
    /// End of the term.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Cow<'a, str>>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    /// All grabs, live and test.
    pub grabs_last_30d: i64,
    /// Live grabs only.
    pub live_grabs_last_30d: i64,
}
