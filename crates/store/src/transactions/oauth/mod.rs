//! Apps register, people let them act, codes and tokens are exchanged.
//!
//! Whatever concerns a grant locks it first, then looks at its codes and tokens: so of many who exchange the same one,
//! each sees what those before did. A grant that ends is deleted, and everything that came of it goes at once.

pub(crate) mod consent;
pub(crate) mod end;
pub(crate) mod exchange;
pub(crate) mod purge;
pub(crate) mod refresh;
pub(crate) mod register;
pub(crate) mod ticket;

use grabd_domain::Timestamp;
use grabd_domain::ids::{GrantId, TeamId};
use grabd_domain::oauth::{ACCESS_LIFE, REFRESH_LIFE};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use crate::Result;
use crate::codes::{ACCESS, ACTIVE, REFRESH};
use crate::database::Tx;
use crate::entities::{oauth_client, oauth_grant, oauth_token, team};

/// A pair of tokens to issue. The tokens themselves are never seen here.
#[derive(Clone, Debug)]
pub struct NewPair {
    /// SHA-256 of the access token.
    pub access: [u8; 32],
    /// SHA-256 of the refresh token.
    pub refresh: [u8; 32],
}

/// What presenting a code or a refresh token came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exchanged {
    /// The pair is good from now on.
    Issued {
        /// For what.
        grant: GrantId,
        /// How long the access token is.
        expires_at: Timestamp,
    },
    /// Nothing happened, for this reason, which is for logs.
    Invalid(&'static str),
    /// Nothing happened: a resource was asked for that was not allowed.
    Target,
    /// It was used before. The grant has ended, with everything that came of it.
    Replayed(GrantId),
}

/// Waits for the grant, if it is still there.
async fn lock(tx: &Tx, grant: Uuid) -> Result<Option<oauth_grant::Model>> {
    Ok(oauth_grant::Entity::find_by_id(grant).lock(LockType::Update).one(tx).await?)
}

async fn end(tx: &Tx, grant: Uuid) -> Result<()> {
    oauth_grant::Entity::delete_by_id(grant).exec(tx).await?;
    Ok(())
}

/// Why nothing can be had of a grant any more, if so.
async fn is_over(tx: &Tx, grant: &oauth_grant::Model, now: Timestamp) -> Result<Option<&'static str>> {
    if grant.expires_at <= now.as_ms() {
        return Ok(Some("the grant is over"));
    }
    Ok((!is_active(tx, TeamId(grant.team_id)).await?).then_some("the team is inactive"))
}

async fn is_active(tx: &Tx, team: TeamId) -> Result<bool> {
    let active = team::Entity::find_by_id(team.0).filter(team::Column::Status.eq(ACTIVE));
    Ok(active.one(tx).await?.is_some())
}

/// Makes the pair good; until when the access token is. Neither outlives the grant.
async fn issue(
    tx: &Tx,
    grant: &oauth_grant::Model,
    pair: &NewPair,
    parent: Option<&[u8; 32]>,
    now: Timestamp,
) -> Result<Timestamp> {
    let until = |life| (now + life).min(Timestamp::from_ms(grant.expires_at));
    let row = |hash: &[u8; 32], kind, expires_at: Timestamp| oauth_token::ActiveModel {
        hash: Set(hash.to_vec()),
        grant_id: Set(grant.id),
        kind: Set(kind),
        created_at: Set(now.as_ms()),
        expires_at: Set(expires_at.as_ms()),
        rotated_at: Set(None),
        parent: Set(parent.map(|parent| parent.to_vec())),
        siblings: Set(0),
    };
    let expires_at = until(ACCESS_LIFE);
    let rows = [row(&pair.access, ACCESS, expires_at), row(&pair.refresh, REFRESH, until(REFRESH_LIFE))];
    oauth_token::Entity::insert_many(rows).exec_without_returning(tx).await?;
    seen(tx, &grant.client_id, now).await?;
    Ok(expires_at)
}

/// An app that is in use is not forgotten. One that describes itself was never written down.
async fn seen(tx: &Tx, client: &str, now: Timestamp) -> Result<()> {
    oauth_client::Entity::update_many()
        .col_expr(oauth_client::Column::SeenAt, Expr::value(now.as_ms()))
        .filter(oauth_client::Column::Id.eq(client))
        .exec(tx)
        .await?;
    Ok(())
}
