//! API requests that the members of a team can look up: recorded in batches, listed, and deleted by age and number.

mod queries;
mod record;

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::credentials::{Environment, Principal};
use grabd_domain::ids::{ApiRequestId, GrabId, GrantId, KeyId, TeamId};
use uuid::Uuid;

use crate::entities::api_request;
use crate::{Error, Result, codes};

pub use queries::{RequestFilter, RequestOutcome};

/// How long requests are kept.
pub const REQUESTS_KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The lowest status of a refused request.
const REFUSED: i16 = 400;

/// A recorded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiRequest {
    /// Its id. Later requests have larger ones.
    pub id: ApiRequestId,
    /// The team whose key or app made it.
    pub team: TeamId,
    /// When it arrived.
    pub at: Timestamp,
    /// The environment of the key or app.
    pub environment: Environment,
    /// The key or app. Requests of users are not recorded.
    pub principal: Principal,
    /// The request id of the response.
    pub request_id: Option<String>,
    /// The HTTP method, or the protocol, such as `MCP`.
    pub method: String,
    /// The path without the query, or what was called.
    pub path: String,
    /// The HTTP status that the response has over REST.
    pub status: u16,
    /// The error code of a refused request.
    pub code: Option<String>,
    /// The message of the error.
    pub message: Option<String>,
    /// The host of the page to capture.
    pub host: Option<String>,
    /// The names of the options of a create, without their values.
    pub options: Vec<String>,
    /// The grab that it created.
    pub grab: Option<GrabId>,
    /// Time until the response.
    pub latency_ms: u32,
    /// Number of requests of the team after this one that were not recorded.
    pub omitted: u32,
}

impl ApiRequest {
    /// Whether the request was refused, or failed.
    pub const fn is_refused(&self) -> bool {
        self.status >= REFUSED.unsigned_abs()
    }
}

impl TryFrom<api_request::Model> for ApiRequest {
    type Error = Error;

    fn try_from(row: api_request::Model) -> Result<Self> {
        let api_request::Model {
            id,
            team_id,
            at,
            env,
            key_id,
            grant_id,
            request_id,
            method,
            path,
            status,
            code,
            message,
            host,
            options,
            grab_id,
            latency_ms,
            omitted,
        } = row;
        let principal = match (key_id, grant_id) {
            (Some(key), _) => Principal::Key(KeyId(key)),
            (None, Some(grant)) => Principal::Grant(GrantId(grant)),
            (None, None) => return Err(Error::Inconsistent("a recorded request has neither a key nor an app")),
        };
        Ok(Self {
            id: ApiRequestId(id),
            team: TeamId(team_id),
            at: Timestamp::from_ms(at),
            environment: codes::read_environment(env)?,
            principal,
            request_id,
            method,
            path,
            status: u16::try_from(status).map_err(|_| Error::Inconsistent("a recorded request has no status"))?,
            code,
            message,
            host,
            options: options.unwrap_or_default().split_whitespace().map(str::to_owned).collect(),
            grab: grab_id.map(GrabId),
            latency_ms: u32::try_from(latency_ms).unwrap_or(0),
            omitted: u32::try_from(omitted).unwrap_or(0),
        })
    }
}

/// The smallest id of requests at this time or later.
fn first_id_at(at: Timestamp) -> Uuid {
    let ms = u128::try_from(at.as_ms()).unwrap_or(0);
    Uuid::from_u128(ms << 80)
}
