//! What a person is asked is kept until they answer, once.

use grabd_domain::Timestamp;
use grabd_domain::ids::UserId;
use sea_orm::ActiveValue::Set;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use crate::database::{Transaction, Tx};
use crate::entities::oauth_ticket;
use crate::{Result, Store};

/// A question to keep.
#[derive(Clone, Debug)]
pub struct NewTicket {
    /// SHA-256 of what the form carries.
    pub hash: [u8; 32],
    /// Who is asked.
    pub user: UserId,
    /// What.
    pub request: String,
    /// Until when an answer counts.
    pub expires_at: Timestamp,
}

struct Taking {
    hash: [u8; 32],
    user: UserId,
    now: Timestamp,
}

impl Store {
    /// Keeps a question.
    ///
    /// # Errors
    /// [`Error::Constraint`](crate::Error::Constraint) when there is no such person.
    pub async fn keep_ticket(&self, ticket: NewTicket) -> Result<()> {
        self.database.write(ticket).await
    }

    /// Takes the question out, so that it is answered once: what was asked, if it was asked of this person and not too
    /// long ago.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn take_ticket(&self, hash: [u8; 32], user: UserId, now: Timestamp) -> Result<Option<String>> {
        self.database.write(Taking { hash, user, now }).await
    }
}

impl Transaction for NewTicket {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        let row = oauth_ticket::ActiveModel {
            hash: Set(self.hash.to_vec()),
            user_id: Set(self.user.0),
            request: Set(self.request.clone()),
            expires_at: Set(self.expires_at.as_ms()),
        };
        oauth_ticket::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(())
    }
}

impl Transaction for Taking {
    type Outcome = Option<String>;

    async fn apply(&self, tx: &Tx) -> Result<Option<String>> {
        let taken = oauth_ticket::Entity::delete_many()
            .filter(oauth_ticket::Column::Hash.eq(self.hash.to_vec()))
            .filter(oauth_ticket::Column::UserId.eq(self.user.0))
            .filter(oauth_ticket::Column::ExpiresAt.gt(self.now.as_ms()))
            .exec_with_returning(tx)
            .await?;
        Ok(taken.into_iter().next().map(|ticket| ticket.request))
    }
}
