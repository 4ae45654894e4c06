//! The runs of a monitor.

use grabd_domain::credentials::Caller;
use grabd_domain::ids::{MonitorId, RunId};
use grabd_store::monitors::RunPage;

use super::manage::{ListRequest, get};
use crate::error::Error;
use crate::list_parameters::{invalid_cursor, parse_typed_limit};
use crate::service::Core;

const CURSOR: &str = "the id of one of this monitor's runs";

/// A page of the runs of a monitor, newest first.
///
/// # Errors
/// [`NotFound`](grabd_domain::Fault::NotFound), and [`BadRequest`](grabd_domain::Fault::BadRequest) with the invalid parameter.
#[tracing::instrument(name = "monitors.list_runs", skip_all)]
pub async fn list_runs(core: &Core, caller: Caller, id: MonitorId, request: &ListRequest) -> Result<RunPage, Error> {
    get(core, caller, id).await?;
    let limit = parse_typed_limit(request.limit, &request.unparsed, CURSOR)?;
    let text = request.starting_after.as_deref();
    let refused = || invalid_cursor(text.unwrap_or_default(), CURSOR);
    let after = match text {
        None => None,
        Some(text) => Some(text.parse::<RunId>().map_err(|_| refused())?),
    };
    let page = core.store.monitors().list_runs(id, after, limit).await;
    Ok(page?.ok_or_else(refused)?)
}
