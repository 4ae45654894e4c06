//! The credits, the plan and the usage of a team.

use grabd_api::{Counts, Credits, Plan, Usage};
use grabd_proto::v1;

use super::{Rfc3339, environment_name};

/// Converts balance and usage. `None` if a required field is missing.
pub(crate) fn usage(usage: &v1::GetUsageResponse) -> Option<Usage<'_>> {
    let v1::GetUsageResponse { credits, plan, grabs_last_30d, live_grabs_last_30d, live, top_up } = usage;
    let v1::Credits { subscription, prepaid, total, held } = *credits.as_ref()?;
    let v1::Plan { name, status, expires_at } = plan.as_ref()?;
    let expires_at = expires_at.as_ref().and_then(Rfc3339::from_proto);
    Some(Usage {
        credits: Credits { subscription, prepaid, total, held },
        plan: Plan { name: name.into(), status: status.into(), expires_at: expires_at.map(|at| at.to_string().into()) },
        usage: Counts { grabs_last_30d: *grabs_last_30d, live_grabs_last_30d: *live_grabs_last_30d },
        environment: environment_name(*live).into(),
        top_up: top_up.into(),
    })
}
