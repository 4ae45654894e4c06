//! The secrets of a team that are in use, and who has seen them.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{EndpointId, KeyId, TeamId, UserId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

use crate::Result;
use crate::areas::Accounts;
use crate::codes::{self, read_time};
use crate::entities::{api_key, link_secret_view, webhook_endpoint};
use crate::padded::padded;

/// A secret that can be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TeamSecret {
    /// An API key, which can be revoked.
    Key(KeyId),
    /// What signs the links of an API key.
    Link(KeyId),
    /// What signs the messages to a webhook.
    Webhook(EndpointId),
}

/// A secret that is in use, and one user who has seen it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownSecret {
    /// The secret.
    pub secret: TeamSecret,
    /// Its environment.
    pub environment: Environment,
    /// Name of the key, or URL of the webhook.
    pub name: String,
    /// Who has seen it. `None`: that is not known, since an earlier version made it, or an API key or app got it.
    pub user: Option<UserId>,
    /// When they saw it last, or when it was made.
    pub seen_at: Timestamp,
}

impl Accounts<'_> {
    /// The secrets of a team that are in use at this time, once for each user who has seen them.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_known_secrets(self, team: TeamId, now: Timestamp) -> Result<Vec<KnownSecret>> {
        let db = self.store.database.reader();
        let keys = api_key::Entity::find()
            .filter(api_key::Column::TeamId.eq(team.0))
            .filter(api_key::Column::RevokedAt.is_null())
            .order_by_asc(api_key::Column::Id)
            .all(db)
            .await?;
        let keys: Vec<_> = keys
            .into_iter()
            .filter(|key| read_time(key.expires_at).is_none_or(|expires_at| now < expires_at))
            .collect();
        let views = link_secret_view::Entity::find()
            .filter(link_secret_view::Column::KeyId.is_in(padded(keys.iter().map(|key| key.id))))
            .order_by_asc(link_secret_view::Column::SeenAt)
            .all(db)
            .await?;
        let mut known = Vec::new();
        for key in keys {
            let (id, environment) = (KeyId(key.id), codes::read_environment(key.env)?);
            let of = |secret, user, seen_at| KnownSecret {
                secret,
                environment,
                name: key.name.clone(),
                user,
                seen_at: Timestamp::from_ms(seen_at),
            };
            if let Some(creator) = key.created_by {
                known.push(of(TeamSecret::Key(id), Some(UserId(creator)), key.created_at));
            }
            if key.link_secret.is_none() {
                continue;
            }
            if key.link_secret_at.is_none() {
                known.push(of(TeamSecret::Link(id), None, key.created_at));
            }
            let seen = views.iter().filter(|view| view.key_id == key.id);
            known.extend(seen.map(|view| of(TeamSecret::Link(id), Some(UserId(view.user_id)), view.seen_at)));
        }
        let webhooks = webhook_endpoint::Entity::find()
            .filter(webhook_endpoint::Column::TeamId.eq(team.0))
            .order_by_asc(webhook_endpoint::Column::Id)
            .all(db)
            .await?;
        for webhook in webhooks {
            known.push(KnownSecret {
                secret: TeamSecret::Webhook(EndpointId(webhook.id)),
                environment: codes::read_environment(webhook.env)?,
                name: webhook.url,
                user: webhook.secret_by.map(UserId),
                seen_at: Timestamp::from_ms(webhook.secret_at.unwrap_or(webhook.created_at)),
            });
        }
        Ok(known)
    }
}
