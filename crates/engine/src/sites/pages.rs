//! The pages of a job.

use grabd_domain::credentials::Caller;
use grabd_domain::ids::SiteId;
use grabd_store::sites::SitePageList;

use super::manage::get;
use crate::error::Error;
use crate::list_parameters::{invalid_cursor, parse_typed_limit};
use crate::monitors::ListRequest;
use crate::service::Core;

const CURSOR: &str = "the number of one of this job's pages";

/// Some pages of a job, in the order of discovery.
///
/// # Errors
/// [`NotFound`](grabd_domain::Fault::NotFound), and [`BadRequest`](grabd_domain::Fault::BadRequest) with the invalid parameter.
#[tracing::instrument(name = "sites.list_pages", skip_all)]
pub async fn list_pages(core: &Core, caller: Caller, id: SiteId, request: &ListRequest) -> Result<SitePageList, Error> {
    get(core, caller, id).await?;
    let limit = parse_typed_limit(request.limit, &request.unparsed, CURSOR)?;
    let after = match request.starting_after.as_deref() {
        None => 0,
        Some(text) => text.parse::<u32>().map_err(|_| invalid_cursor(text, CURSOR))?,
    };
    Ok(core.store.sites().list_pages(id, after, limit).await?)
}
