//! A refresh token is exchanged for the next pair, and retires.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::ids::GrantId;
use grabd_domain::oauth::{ClientId, Presented, Resources, Retired, judge};
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter};

use super::{Exchanged, NewPair, end, is_over, issue, lock};
use crate::codes::{REFRESH, read_count};
use crate::database::{Transaction, Tx};
use crate::entities::oauth_token;
use crate::{Result, Store};

/// A refresh token that was presented.
#[derive(Clone, Debug)]
pub struct Refresh {
    /// SHA-256 of the token.
    pub token: [u8; 32],
    /// Who presents it.
    pub client: ClientId,
    /// What they want tokens for.
    pub resources: Resources,
    /// What they get.
    pub pair: NewPair,
    /// For how long a second use is forgiven.
    pub grace: Duration,
    /// When.
    pub now: Timestamp,
}

impl Store {
    /// Exchanges a refresh token. A second use that is not forgiven ends the grant.
    ///
    /// # Errors
    /// Only of the database; a refusal is an outcome.
    pub async fn refresh(&self, refresh: Refresh) -> Result<Exchanged> {
        self.database.write(refresh).await
    }
}

impl Transaction for Refresh {
    type Outcome = Exchanged;

    async fn apply(&self, tx: &Tx) -> Result<Exchanged> {
        let find = || {
            oauth_token::Entity::find_by_id(self.token.to_vec()).filter(oauth_token::Column::Kind.eq(REFRESH)).one(tx)
        };
        let Some(known) = find().await? else { return Ok(Exchanged::Invalid("an unknown refresh token")) };
        // Whoever was first has committed once the lock is ours.
        let (Some(grant), Some(token)) = (lock(tx, known.grant_id).await?, find().await?) else {
            return Ok(Exchanged::Invalid("the grant has ended"));
        };
        if grant.client_id != self.client.as_str() {
            return Ok(Exchanged::Invalid("another client's refresh token"));
        }
        let presented = judge(self.retired(tx, &token).await?, self.now, self.grace);
        if presented == Presented::Reuse {
            end(tx, grant.id).await?;
            return Ok(Exchanged::Replayed(GrantId(grant.id)));
        }
        if token.expires_at <= self.now.as_ms() {
            return Ok(Exchanged::Invalid("the refresh token is too old"));
        }
        if let Some(why) = is_over(tx, &grant, self.now).await? {
            return Ok(Exchanged::Invalid(why));
        }
        if Resources::from_text(&grant.resources).check(&self.resources).is_err() {
            return Ok(Exchanged::Target);
        }
        let change = oauth_token::Entity::update_many().filter(oauth_token::Column::Hash.eq(token.hash));
        let change = match presented {
            Presented::Sibling => {
                let one_more = Expr::col(oauth_token::Column::Siblings).add(1);
                change.col_expr(oauth_token::Column::Siblings, one_more)
            }
            Presented::First | Presented::Reuse => {
                change.col_expr(oauth_token::Column::RotatedAt, Expr::value(self.now.as_ms()))
            }
        };
        change.exec(tx).await?;
        let expires_at = issue(tx, &grant, &self.pair, Some(&self.token), self.now).await?;
        Ok(Exchanged::Issued { grant: GrantId(grant.id), expires_at })
    }
}

impl Refresh {
    async fn retired(&self, tx: &Tx, token: &oauth_token::Model) -> Result<Option<Retired>> {
        let Some(at) = token.rotated_at else { return Ok(None) };
        let successors = oauth_token::Entity::find()
            .filter(oauth_token::Column::Parent.eq(self.token.to_vec()))
            .filter(oauth_token::Column::RotatedAt.is_not_null())
            .count(tx)
            .await?;
        let siblings = read_count(token.siblings)?;
        Ok(Some(Retired { at: Timestamp::from_ms(at), siblings, succeeded: successors > 0 }))
    }
}
