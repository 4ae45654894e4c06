//! Keys of signed links.

use grabd_domain::Timestamp;
use grabd_domain::credentials::{Caller, Principal, Scopes};
use grabd_domain::ids::{KeyId, TeamId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use crate::areas::Accounts;
use crate::codes::{self, ACTIVE, SUSPENDED, read_time};
use crate::entities::{api_key, team};
use crate::{Error, Result};

/// An API key that is in use, as the signer of links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSigner {
    /// What its links do is done by this caller.
    pub caller: Caller,
    /// The encrypted secret. `None` until it is first requested, so there are no links.
    pub sealed_secret: Option<Vec<u8>>,
    /// What the key may be used for.
    pub scopes: Scopes,
    /// When it expires, if it does.
    pub expires_at: Option<Timestamp>,
    /// Whether the team is suspended, so that nothing may be done.
    pub is_suspended: bool,
}

impl Accounts<'_> {
    /// The key with this id. Revoked keys and those of removed teams are not found. One indexed read.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_link_signer(self, key: KeyId) -> Result<Option<LinkSigner>> {
        let found = api_key::Entity::find_by_id(key.0)
            .find_also_related(team::Entity)
            .filter(api_key::Column::RevokedAt.is_null())
            .filter(team::Column::Status.is_in([ACTIVE, SUSPENDED]))
            .one(self.store.database.reader())
            .await?;
        let Some((key, team)) = found else { return Ok(None) };
        let team = team.ok_or(Error::Inconsistent("API key without a team"))?;
        let caller = Caller {
            team: TeamId(team.id),
            environment: codes::read_environment(key.env)?,
            principal: Principal::Key(KeyId(key.id)),
        };
        Ok(Some(LinkSigner {
            caller,
            sealed_secret: key.link_secret,
            scopes: codes::read_scopes(key.scopes)?,
            expires_at: read_time(key.expires_at),
            is_suspended: team.status == SUSPENDED,
        }))
    }
}
