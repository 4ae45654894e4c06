//! Reads of recorded requests. Every read is of one team.

use std::collections::BTreeMap;

use grabd_domain::Day;
use grabd_domain::credentials::Principal;
use grabd_domain::ids::{ApiRequestId, GrantId, TeamId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};
use uuid::Uuid;

use super::{ApiRequest, REFUSED, first_id_at};
use crate::Result;
use crate::areas::Requests;
use crate::entities::{api_request, oauth_grant};
use crate::padded::padded;

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// It was accepted: a status below 400.
    Accepted,
    /// It was refused because of the request: a status from 400 to 499.
    Refused,
    /// It failed for another reason: a status of 500 or more.
    Failed,
}

/// Which requests of a team are listed. `None`: all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestFilter {
    /// Those of this key or app.
    pub principal: Option<Principal>,
    /// Those with this outcome.
    pub outcome: Option<RequestOutcome>,
    /// Those with this error code.
    pub code: Option<String>,
    /// Those that were answered on this day.
    pub day: Option<Day>,
    /// Those with this request id.
    pub request_id: Option<String>,
}

impl Requests<'_> {
    /// Up to `limit` requests of a team, newest first, optionally only those before another one.
    ///
    /// # Errors
    /// Database errors, and rows that cannot be read.
    pub async fn list_requests(
        self,
        team: TeamId,
        filter: &RequestFilter,
        before: Option<ApiRequestId>,
        limit: u32,
    ) -> Result<Vec<ApiRequest>> {
        let mut query = apply(of_team(team), filter);
        if let Some(before) = before {
            query = query.filter(api_request::Column::Id.lt(before.0));
        }
        let newest_first = query.order_by_desc(api_request::Column::Id).limit(u64::from(limit));
        let rows = newest_first.all(self.store.database.reader()).await?;
        rows.into_iter().map(ApiRequest::try_from).collect()
    }

    /// A request of a team.
    ///
    /// # Errors
    /// Database errors, and a row that cannot be read.
    pub async fn find_request(self, team: TeamId, id: ApiRequestId) -> Result<Option<ApiRequest>> {
        let row = of_team(team).filter(api_request::Column::Id.eq(id.0)).one(self.store.database.reader()).await?;
        row.map(ApiRequest::try_from).transpose()
    }

    /// The names of the apps of these grants of a team, as far as they exist.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn app_names(self, team: TeamId, grants: &[GrantId]) -> Result<BTreeMap<GrantId, String>> {
        if grants.is_empty() {
            return Ok(BTreeMap::new());
        }
        let found = oauth_grant::Entity::find()
            .select_only()
            .columns([oauth_grant::Column::Id, oauth_grant::Column::ClientName])
            .filter(oauth_grant::Column::TeamId.eq(team.0))
            .filter(oauth_grant::Column::Id.is_in(padded(grants.iter().map(|grant| grant.0))))
            .into_tuple::<(Uuid, String)>()
            .all(self.store.database.reader())
            .await?;
        Ok(found.into_iter().map(|(id, name)| (GrantId(id), name)).collect())
    }
}

fn of_team(team: TeamId) -> Select<api_request::Entity> {
    api_request::Entity::find().filter(api_request::Column::TeamId.eq(team.0))
}

fn apply(query: Select<api_request::Entity>, filter: &RequestFilter) -> Select<api_request::Entity> {
    let RequestFilter { principal, outcome, code, day, request_id } = filter;
    let mut query = match principal {
        None => query,
        Some(Principal::Key(key)) => query.filter(api_request::Column::KeyId.eq(key.0)),
        Some(Principal::Grant(grant)) => query.filter(api_request::Column::GrantId.eq(grant.0)),
        // Requests of users are not recorded.
        Some(Principal::User(user)) => query.filter(api_request::Column::KeyId.eq(user.0)),
    };
    query = match outcome {
        None => query,
        Some(RequestOutcome::Accepted) => query.filter(api_request::Column::Status.lt(REFUSED)),
        Some(RequestOutcome::Refused) => query.filter(api_request::Column::Status.between(REFUSED, 499_i16)),
        Some(RequestOutcome::Failed) => query.filter(api_request::Column::Status.gte(500_i16)),
    };
    if let Some(code) = code {
        query = query.filter(api_request::Column::Code.eq(code.as_str()));
    }
    if let Some(request_id) = request_id {
        query = query.filter(api_request::Column::RequestId.eq(request_id.as_str()));
    }
    if let Some(day) = day {
        query = query.filter(api_request::Column::Id.gte(first_id_at(day.start())));
        query = query.filter(api_request::Column::Id.lt(first_id_at(day.next().start())));
    }
    query
}
