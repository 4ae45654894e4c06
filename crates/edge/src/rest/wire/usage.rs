//! The credits, the plan and the usage of a team.

use grabd_proto::v1;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Rfc3339, environment_name, environment_schema};

/// Balance and usage of a team.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Usage<'a> {
    /// Remaining credits.
    #[schema(inline)]
    credits: Credits,
    /// Plan of the team.
    #[schema(inline)]
    plan: Plan<'a>,
    /// Grabs of the last 30 days.
    #[schema(inline)]
    usage: Counts,
    /// Environment of the key.
    #[schema(schema_with = environment_schema)]
    environment: &'static str,
    /// URL at which to buy credits.
    top_up: &'a str,
}

#[derive(Debug, Serialize, ToSchema)]
struct Credits {
    /// Remaining credits of the annual subscription.
    subscription: i64,
    /// Remaining prepaid credits.
    prepaid: i64,
    /// All remaining credits.
    total: i64,
    /// Credits held for open live grabs; not included in the other numbers.
    held: i64,
}

#[derive(Debug, Serialize, ToSchema)]
struct Plan<'a> {
    /// Name of the plan.
    name: &'a str,
    /// Status of the plan.
    status: &'a str,
    /// End of the term.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Rfc3339>,
}

#[derive(Debug, Serialize, ToSchema)]
struct Counts {
    /// All grabs, live and test.
    grabs_last_30d: i64,
    /// Live grabs only.
    live_grabs_last_30d: i64,
}

/// Converts balance and usage. `None` if a required field is missing.
pub(crate) fn usage(usage: &v1::GetUsageResponse) -> Option<Usage<'_>> {
    let v1::GetUsageResponse { credits, plan, grabs_last_30d, live_grabs_last_30d, live, top_up } = usage;
    let v1::Credits { subscription, prepaid, total, held } = *credits.as_ref()?;
    let v1::Plan { name, status, expires_at } = plan.as_ref()?;
    Some(Usage {
        credits: Credits { subscription, prepaid, total, held },
        plan: Plan { name, status, expires_at: expires_at.as_ref().and_then(Rfc3339::from_proto) },
        usage: Counts { grabs_last_30d: *grabs_last_30d, live_grabs_last_30d: *live_grabs_last_30d },
        environment: environment_name(*live),
        top_up,
    })
}
