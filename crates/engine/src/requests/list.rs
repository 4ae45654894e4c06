//! Reads of recorded requests, for members of the team.

use std::collections::BTreeMap;

use grabd_domain::credentials::Principal;
use grabd_domain::ids::{ApiRequestId, GrantId, KeyId};
use grabd_store::requests::{ApiRequest, RequestFilter};

use super::write;
use crate::accounts::TeamMember;
use crate::error::Error;
use crate::service::Core;

/// Maximum number of requests on a page.
pub const MAX_REQUESTS: u32 = 100;

/// A page of recorded requests, with the names of those who made them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestPage {
    /// Newest first.
    pub requests: Vec<ApiRequest>,
    /// Cursor of the next, older page; `None` on the last page.
    pub before: Option<ApiRequestId>,
    /// The names of the team's keys.
    pub keys: BTreeMap<KeyId, String>,
    /// The names of the apps of these requests, as far as they are still connected.
    pub apps: BTreeMap<GrantId, String>,
}

/// A page of the requests of a member's team: up to `limit` (1 to [`MAX_REQUESTS`]) before another one, or from the newest.
/// Those that this process has answered before are included.
///
/// # Errors
/// When the database cannot be read.
#[tracing::instrument(name = "requests.list", skip_all)]
pub async fn list(
    core: &Core,
    member: &TeamMember,
    filter: &RequestFilter,
    before: Option<ApiRequestId>,
    limit: u32,
) -> Result<RequestPage, Error> {
    write::write(core).await;
    let limit = limit.clamp(1, MAX_REQUESTS);
    // One more request shows whether there is another page.
    let mut requests = core.store.requests().list_requests(member.team, filter, before, limit + 1).await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = requests.len() > limit;
    requests.truncate(limit);
    let before = requests.last().map(|last| last.id).filter(|_| has_more);
    with_names(core, member, requests, before).await
}

/// A request of a member's team, as a page of its own. It is empty if there is none.
///
/// # Errors
/// When the database cannot be read.
#[tracing::instrument(name = "requests.find", skip_all)]
pub async fn find(core: &Core, member: &TeamMember, id: ApiRequestId) -> Result<RequestPage, Error> {
    let found = core.store.requests().find_request(member.team, id).await?;
    with_names(core, member, found.into_iter().collect(), None).await
}

async fn with_names(
    core: &Core,
    member: &TeamMember,
    requests: Vec<ApiRequest>,
    before: Option<ApiRequestId>,
) -> Result<RequestPage, Error> {
    let grant = |request: &ApiRequest| match request.principal {
        Principal::Grant(grant) => Some(grant),
        Principal::Key(_) | Principal::User(_) => None,
    };
    let grants: Vec<GrantId> = requests.iter().filter_map(grant).collect();
    let apps = core.store.requests().app_names(member.team, &grants).await?;
    let keys = core.store.accounts().list_keys(member.team).await?;
    let keys = keys.into_iter().map(|key| (key.id, key.name)).collect();
    Ok(RequestPage { requests, before, keys, apps })
}
