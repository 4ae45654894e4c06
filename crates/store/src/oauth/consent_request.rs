//! Consent requests, stored until the user answers.

use grabd_domain::Timestamp;
use grabd_domain::ids::UserId;
use sea_orm::ActiveValue::Set;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::Result;
use crate::areas::OAuth;
use crate::database::{Transaction, Tx};
use crate::entities::oauth_ticket;

/// Open consent requests of a user. Each may have 16 KB, and a page that is reloaded stores one each time.
const TICKETS: u64 = 20;

/// A consent request to store.
#[derive(Clone, Debug)]
pub struct NewConsentRequest {
    /// SHA-256 of the token in the consent form.
    pub hash: [u8; 32],
    /// The user who is asked.
    pub user: UserId,
    /// The authorization request.
    pub request: String,
    /// Expiry.
    pub expires_at: Timestamp,
}

struct ConsumeConsentRequest {
    hash: [u8; 32],
    user: UserId,
    now: Timestamp,
}

impl OAuth<'_> {
    /// Stores a consent request.
    ///
    /// # Errors
    /// [`Error::Constraint`](crate::Error::Constraint) when the user does not exist.
    pub async fn create_consent_request(self, request: NewConsentRequest) -> Result<()> {
        self.store.database.write(request).await
    }

    /// Removes the consent request, so that it can be answered once, and returns the authorization request. `None` when
    /// it does not exist, has expired or is for another user.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn consume_consent_request(self, hash: [u8; 32], user: UserId, now: Timestamp) -> Result<Option<String>> {
        self.store.database.write(ConsumeConsentRequest { hash, user, now }).await
    }
}

impl Transaction for NewConsentRequest {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        let row = oauth_ticket::ActiveModel {
            hash: Set(self.hash.to_vec()),
            user_id: Set(self.user.0),
            request: Set(self.request.clone()),
            expires_at: Set(self.expires_at.as_ms()),
        };
        oauth_ticket::Entity::insert(row).exec_without_returning(tx).await?;
        // A user answers one form at a time. Forms that were opened long before are not valid any more.
        let oldest: Vec<Vec<u8>> = oauth_ticket::Entity::find()
            .select_only()
            .column(oauth_ticket::Column::Hash)
            .filter(oauth_ticket::Column::UserId.eq(self.user.0))
            .order_by_desc(oauth_ticket::Column::ExpiresAt)
            .offset(TICKETS)
            .limit(TICKETS)
            .into_tuple()
            .all(tx)
            .await?;
        if !oldest.is_empty() {
            oauth_ticket::Entity::delete_many().filter(oauth_ticket::Column::Hash.is_in(oldest)).exec(tx).await?;
        }
        Ok(())
    }
}

impl Transaction for ConsumeConsentRequest {
    type Outcome = Option<String>;

    async fn apply(&self, tx: &Tx) -> Result<Option<String>> {
        let taken = oauth_ticket::Entity::delete_many()
            .filter(oauth_ticket::Column::Hash.eq(self.hash.to_vec()))
            .filter(oauth_ticket::Column::UserId.eq(self.user.0))
            .filter(oauth_ticket::Column::ExpiresAt.gt(self.now.as_ms()))
            .exec_with_returning(tx)
            .await?;
        Ok(taken.into_iter().next().map(|row| row.request))
    }
}
