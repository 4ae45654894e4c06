//! Writes recorded requests, and deletes old ones.

use std::collections::HashSet;

use grabd_domain::credentials::Principal;
use grabd_domain::ids::{ApiRequestId, TeamId};
use grabd_domain::{Day, Timestamp};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::ExprTrait;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};
use uuid::Uuid;

use super::{ApiRequest, REFUSED, REQUESTS_KEPT, first_id_at};
use crate::areas::Requests;
use crate::database::{Transaction, Tx};
use crate::entities::{api_request, team};
use crate::padded::padded;
use crate::{Result, codes};

/// Binary logarithm of the highest number of rows in one statement.
const MAX_ROWS_LOG: u32 = 6;

struct RecordRequests(Vec<ApiRequest>);

struct TrimRequests {
    team: TeamId,
    is_refused: bool,
    day: Day,
    kept: u32,
}

struct PurgeRequests {
    now: Timestamp,
    limit: u32,
}

impl Requests<'_> {
    /// Writes requests. Those of deleted teams are left out.
    ///
    /// # Errors
    /// Database errors only. Nothing is written then.
    pub async fn record_requests(self, requests: Vec<ApiRequest>) -> Result<()> {
        if requests.is_empty() {
            return Ok(());
        }
        self.store.database.write(RecordRequests(requests)).await
    }

    /// Deletes all but the newest requests of a team and a day that were refused, or accepted. Returns the number of deleted
    /// ones.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn trim_requests(self, team: TeamId, is_refused: bool, day: Day, kept: u32) -> Result<u64> {
        self.store.database.write(TrimRequests { team, is_refused, day, kept }).await
    }

    /// Deletes up to `limit` requests that are older than [`REQUESTS_KEPT`], and returns their number.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn purge_requests(self, now: Timestamp, limit: u32) -> Result<u64> {
        self.store.database.write(PurgeRequests { now, limit }).await
    }
}

impl Transaction for RecordRequests {
    type Outcome = ();
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<()> {
        let teams: HashSet<Uuid> = self.0.iter().map(|request| request.team.0).collect();
        let existing: HashSet<Uuid> = team::Entity::find()
            .select_only()
            .column(team::Column::Id)
            .filter(team::Column::Id.is_in(padded(teams)))
            .filter(team::Column::DeletedAt.is_null())
            .into_tuple::<Uuid>()
            .all(tx)
            .await?
            .into_iter()
            .collect();
        let mut rows: Vec<_> = self.0.iter().filter(|request| existing.contains(&request.team.0)).map(row).collect();
        // Powers of two, because every number of rows is a different statement to parse and cache.
        while let Some(size) = rows.len().checked_ilog2().map(|log| 1 << Ord::min(log, MAX_ROWS_LOG)) {
            let rest = rows.split_off(size);
            api_request::Entity::insert_many(rows).exec_without_returning(tx).await?;
            rows = rest;
        }
        Ok(())
    }
}

fn row(request: &ApiRequest) -> api_request::ActiveModel {
    let ApiRequest {
        id,
        team,
        at,
        environment,
        principal,
        request_id,
        method,
        path,
        status,
        code,
        message,
        host,
        options,
        grab,
        latency_ms,
        omitted,
    } = request;
    let grant = match principal {
        Principal::Grant(grant) => Some(grant.0),
        Principal::Key(_) | Principal::User(_) => None,
    };
    let (ApiRequestId(id), TeamId(team)) = (*id, *team);
    api_request::ActiveModel {
        id: Set(id),
        team_id: Set(team),
        at: Set(at.as_ms()),
        env: Set(codes::environment(*environment)),
        key_id: Set(principal.key().map(|key| key.0)),
        grant_id: Set(grant),
        request_id: Set(request_id.clone()),
        method: Set(method.clone()),
        path: Set(path.clone()),
        status: Set(i16::try_from(*status).unwrap_or(i16::MAX)),
        code: Set(code.clone()),
        message: Set(message.clone()),
        host: Set(host.clone()),
        options: Set((!options.is_empty()).then(|| options.join(" "))),
        grab_id: Set(grab.map(|grab| grab.0)),
        latency_ms: Set(i32::try_from(*latency_ms).unwrap_or(i32::MAX)),
        omitted: Set(i32::try_from(*omitted).unwrap_or(i32::MAX)),
    }
}

impl Transaction for TrimRequests {
    type Outcome = u64;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let is_refused = api_request::Column::Status.gte(REFUSED);
        let of_kind = api_request::Column::TeamId
            .eq(self.team.0)
            .and(api_request::Column::Id.gte(first_id_at(self.day.start())))
            .and(api_request::Column::Id.lt(first_id_at(self.day.next().start())))
            .and(if self.is_refused { is_refused } else { is_refused.not() });
        let newest_to_delete: Option<Uuid> = api_request::Entity::find()
            .select_only()
            .column(api_request::Column::Id)
            .filter(of_kind.clone())
            .order_by_desc(api_request::Column::Id)
            .offset(u64::from(self.kept))
            .limit(1)
            .into_tuple()
            .one(tx)
            .await?;
        let Some(newest) = newest_to_delete else { return Ok(0) };
        let old = api_request::Entity::delete_many().filter(of_kind).filter(api_request::Column::Id.lte(newest));
        Ok(old.exec(tx).await?.rows_affected)
    }
}

impl Transaction for PurgeRequests {
    type Outcome = u64;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let old = api_request::Entity::find()
            .select_only()
            .column(api_request::Column::Id)
            .filter(api_request::Column::Id.lt(first_id_at(self.now - REQUESTS_KEPT)))
            .order_by_asc(api_request::Column::Id)
            .limit(u64::from(self.limit))
            .into_query();
        let purged =
            api_request::Entity::delete_many().filter(api_request::Column::Id.in_subquery(old)).exec(tx).await?;
        Ok(purged.rows_affected)
    }
}
