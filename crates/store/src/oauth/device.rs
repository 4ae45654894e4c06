//! Requests of the device authorization grant (RFC 8628): created by an app, answered by a user, and polled by the app.

use grabd_domain::Timestamp;
use grabd_domain::oauth::{DEVICE_REQUESTS, POLL_INTERVAL, POLL_TOLERANCE, UserCode};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter};

use crate::Result;
use crate::areas::OAuth;
use crate::database::{Transaction, Tx};
use crate::entities::oauth_device;

const DENIED: i16 = 0;
const ALLOWED: i16 = 1;

/// A request to store.
#[derive(Clone, Debug)]
pub struct NewDeviceRequest {
    /// SHA-256 of the device code.
    pub hash: [u8; 32],
    /// What the user types.
    pub user_code: UserCode,
    /// The request.
    pub request: String,
    /// Expiry.
    pub expires_at: Timestamp,
    /// Current time.
    pub now: Timestamp,
}

/// Result of creating a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceOutcome {
    /// It is stored.
    Created,
    /// Another request has the same user code. Try another one.
    CodeTaken,
    /// As many requests are open as may be.
    TooMany,
}

/// A request that waits for a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceRequest {
    /// SHA-256 of the device code.
    pub hash: [u8; 32],
    /// The request.
    pub request: String,
}

/// What an app that polls is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DevicePoll {
    /// There is no such request.
    Unknown,
    /// The request has expired.
    Expired,
    /// No user has answered yet.
    Pending,
    /// The same, and the app polls too often.
    SlowDown,
    /// A user has denied it.
    Denied,
    /// A user has allowed it. Contains the request.
    Allowed(String),
}

struct Answer {
    hash: [u8; 32],
    decision: i16,
    now: Timestamp,
}

struct Poll {
    hash: [u8; 32],
    now: Timestamp,
}

impl OAuth<'_> {
    /// Stores a request.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn create_device_request(self, request: NewDeviceRequest) -> Result<DeviceOutcome> {
        self.store.database.write(request).await
    }

    /// The request with a user code that is not answered and not expired.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_device_request(self, code: &UserCode, now: Timestamp) -> Result<Option<DeviceRequest>> {
        let found = oauth_device::Entity::find()
            .filter(oauth_device::Column::UserCode.eq(code.as_str()))
            .filter(oauth_device::Column::ExpiresAt.gt(now.as_ms()))
            .filter(oauth_device::Column::Decision.is_null())
            .one(self.store.database.reader())
            .await?;
        Ok(found.and_then(|row| Some(DeviceRequest { hash: row.hash.try_into().ok()?, request: row.request })))
    }

    /// Records the user's answer. `false` if there is one already, or the request has expired.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn answer_device_request(self, hash: [u8; 32], is_allowed: bool, now: Timestamp) -> Result<bool> {
        let decision = if is_allowed { ALLOWED } else { DENIED };
        self.store.database.write(Answer { hash, decision, now }).await
    }

    /// What the app that polls with this device code is told.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn poll_device_request(self, hash: [u8; 32], now: Timestamp) -> Result<DevicePoll> {
        self.store.database.write(Poll { hash, now }).await
    }
}

impl Transaction for NewDeviceRequest {
    type Outcome = DeviceOutcome;

    async fn apply(&self, tx: &Tx) -> Result<DeviceOutcome> {
        oauth_device::Entity::delete_many()
            .filter(oauth_device::Column::UserCode.eq(self.user_code.as_str()))
            .filter(oauth_device::Column::ExpiresAt.lte(self.now.as_ms()))
            .exec(tx)
            .await?;
        let open = oauth_device::Entity::find().filter(oauth_device::Column::ExpiresAt.gt(self.now.as_ms()));
        if open.clone().count(tx).await? >= DEVICE_REQUESTS {
            return Ok(DeviceOutcome::TooMany);
        }
        if open.filter(oauth_device::Column::UserCode.eq(self.user_code.as_str())).count(tx).await? > 0 {
            return Ok(DeviceOutcome::CodeTaken);
        }
        let row = oauth_device::ActiveModel {
            hash: Set(self.hash.to_vec()),
            user_code: Set(self.user_code.as_str().to_owned()),
            request: Set(self.request.clone()),
            expires_at: Set(self.expires_at.as_ms()),
            polled_at: Set(None),
            decision: Set(None),
        };
        oauth_device::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(DeviceOutcome::Created)
    }
}

impl Transaction for Answer {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let answered = oauth_device::Entity::update_many()
            .col_expr(oauth_device::Column::Decision, Expr::value(self.decision))
            .filter(oauth_device::Column::Hash.eq(self.hash.to_vec()))
            .filter(oauth_device::Column::ExpiresAt.gt(self.now.as_ms()))
            .filter(oauth_device::Column::Decision.is_null())
            .exec(tx)
            .await?;
        Ok(answered.rows_affected == 1)
    }
}

impl Transaction for Poll {
    type Outcome = DevicePoll;

    async fn apply(&self, tx: &Tx) -> Result<DevicePoll> {
        let Some(row) = oauth_device::Entity::find_by_id(self.hash.to_vec()).one(tx).await? else {
            return Ok(DevicePoll::Unknown);
        };
        if row.expires_at <= self.now.as_ms() {
            return Ok(DevicePoll::Expired);
        }
        match row.decision {
            Some(ALLOWED) => return Ok(DevicePoll::Allowed(row.request)),
            Some(_) => return Ok(DevicePoll::Denied),
            None => {}
        }
        oauth_device::Entity::update_many()
            .col_expr(oauth_device::Column::PolledAt, Expr::value(self.now.as_ms()))
            .filter(oauth_device::Column::Hash.eq(self.hash.to_vec()))
            .exec(tx)
            .await?;
        let earliest = self.now - POLL_INTERVAL + POLL_TOLERANCE;
        Ok(match row.polled_at.is_some_and(|at| at > earliest.as_ms()) {
            true => DevicePoll::SlowDown,
            false => DevicePoll::Pending,
        })
    }
}
