//! OAuth: client registration, consents, and the exchange of codes and tokens.
//!
//! Every change of a grant locks the grant before it reads codes and tokens, so concurrent exchanges of the same code
//! or token see each other's result. Ending a grant deletes it and, by cascade, its codes and tokens.

pub(crate) mod consent;
pub(crate) mod consent_request;
pub(crate) mod device;
pub(crate) mod exchange;
pub(crate) mod purge;
pub(crate) mod queries;
pub(crate) mod refresh;
pub(crate) mod register;
pub(crate) mod revoke;

pub use consent::{ConsentOutcome, NewConsent};
pub use consent_request::NewConsentRequest;
pub use device::{DeviceOutcome, DevicePoll, DeviceRequest, NewDeviceRequest};
pub use exchange::Exchange;
pub use queries::{Client, Connection, TokenCaller};
pub use refresh::Refresh;
pub use register::NewClient;
pub use revoke::RevokeOutcome;

use grabd_domain::Timestamp;
use grabd_domain::ids::{GrantId, TeamId};
use grabd_domain::oauth::{ACCESS_LIFE, OauthScopes, REFRESH_LIFE};
use grabd_domain::permissions::Permission;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use crate::Result;
use crate::codes::{self, ACCESS, ACTIVE, REFRESH};
use crate::database::Tx;
use crate::entities::{member, oauth_client, oauth_grant, oauth_token, team};

/// A token pair to issue. Contains only hashes of the tokens.
#[derive(Clone, Debug)]
pub struct NewTokenPair {
    /// SHA-256 of the access token.
    pub access: [u8; 32],
    /// SHA-256 of the refresh token.
    pub refresh: [u8; 32],
}

/// Outcome of presenting a code or a refresh token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenOutcome {
    /// The token pair was issued.
    Issued {
        /// The grant.
        grant: GrantId,
        /// What the access token may be used for.
        scopes: OauthScopes,
        /// Expiry of the access token.
        expires_at: Timestamp,
    },
    /// Rejected without any change. The reason is for logs only.
    Invalid(&'static str),
    /// Rejected without any change: a requested resource was not granted.
    InvalidTarget,
    /// Rejected without any change: a requested scope was not granted.
    InvalidScope,
    /// The code or token was used before. The grant and all its tokens were revoked.
    Replayed(GrantId),
}

/// Locks the grant, if it still exists.
async fn lock_grant(tx: &Tx, grant: Uuid) -> Result<Option<oauth_grant::Model>> {
    Ok(oauth_grant::Entity::find_by_id(grant).lock(LockType::Update).one(tx).await?)
}

async fn delete_grant(tx: &Tx, grant: Uuid) -> Result<()> {
    oauth_grant::Entity::delete_by_id(grant).exec(tx).await?;
    Ok(())
}

/// Why the grant can no longer be used, if so.
async fn unusable_reason(tx: &Tx, grant: &oauth_grant::Model, now: Timestamp) -> Result<Option<&'static str>> {
    if grant.expires_at <= now.as_ms() {
        return Ok(Some("grant expired"));
    }
    if !is_active(tx, TeamId(grant.team_id)).await? {
        return Ok(Some("team is inactive"));
    }
    let member = member::Entity::find_by_id((grant.team_id, grant.user_id)).one(tx).await?;
    let role = member.map(|row| codes::read_role(row.role)).transpose()?;
    let is_permitted = role.is_some_and(|role| role.allows(Permission::ConnectApps));
    Ok((!is_permitted).then_some("role allows no apps"))
}

async fn is_active(tx: &Tx, team: TeamId) -> Result<bool> {
    let active = team::Entity::find_by_id(team.0).filter(team::Column::Status.eq(ACTIVE));
    Ok(active.one(tx).await?.is_some())
}

/// Stores the token pair and returns the expiry of the access token, which has these scopes. Neither token outlives the
/// grant.
async fn issue_tokens(
    tx: &Tx,
    grant: &oauth_grant::Model,
    pair: &NewTokenPair,
    scopes: OauthScopes,
    parent: Option<&[u8; 32]>,
    now: Timestamp,
) -> Result<Timestamp> {
    let until = |life| (now + life).min(Timestamp::from_ms(grant.expires_at));
    let row = |hash: &[u8; 32], kind, scopes, expires_at: Timestamp| oauth_token::ActiveModel {
        hash: Set(hash.to_vec()),
        grant_id: Set(grant.id),
        kind: Set(kind),
        created_at: Set(now.as_ms()),
        expires_at: Set(expires_at.as_ms()),
        rotated_at: Set(None),
        parent: Set(parent.map(|parent| parent.to_vec())),
        siblings: Set(0),
        scopes: Set(scopes),
    };
    let expires_at = until(ACCESS_LIFE);
    let rows = [
        row(&pair.access, ACCESS, codes::oauth_scopes(scopes), expires_at),
        row(&pair.refresh, REFRESH, grant.scopes, until(REFRESH_LIFE)),
    ];
    oauth_token::Entity::insert_many(rows).exec_without_returning(tx).await?;
    touch_client(tx, &grant.client_id, now).await?;
    Ok(expires_at)
}

/// Records the use of a client, so that it is not purged. Clients identified by a metadata URL have no row.
async fn touch_client(tx: &Tx, client: &str, now: Timestamp) -> Result<()> {
    oauth_client::Entity::update_many()
        .col_expr(oauth_client::Column::SeenAt, Expr::value(now.as_ms()))
        .filter(oauth_client::Column::Id.eq(client))
        .exec(tx)
        .await?;
    Ok(())
}
