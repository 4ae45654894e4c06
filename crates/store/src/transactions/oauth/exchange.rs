//! A code is exchanged for the first pair of tokens, once.

use grabd_domain::Timestamp;
use grabd_domain::ids::GrantId;
use grabd_domain::oauth::{Challenge, ClientId, Resources};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use super::{Exchanged, NewPair, end, is_over, issue, lock};
use crate::database::{Transaction, Tx};
use crate::entities::{oauth_code, oauth_grant};
use crate::{Result, Store};

/// A code that was presented, with what must be the same as when it was asked for.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// SHA-256 of the code.
    pub code: [u8; 32],
    /// Who presents it.
    pub client: ClientId,
    /// Where they say it was sent, if they say so.
    pub redirect: Option<String>,
    /// What their verifier makes of it.
    pub challenge: Challenge,
    /// What they want tokens for.
    pub resources: Resources,
    /// What they get.
    pub pair: NewPair,
    /// When.
    pub now: Timestamp,
}

impl Store {
    /// Exchanges a code. A second use ends everything that came of the first.
    ///
    /// # Errors
    /// Only of the database; a refusal is an outcome.
    pub async fn exchange(&self, exchange: Exchange) -> Result<Exchanged> {
        self.database.write(exchange).await
    }
}

impl Transaction for Exchange {
    type Outcome = Exchanged;

    async fn apply(&self, tx: &Tx) -> Result<Exchanged> {
        let find = || oauth_code::Entity::find_by_id(self.code.to_vec());
        let Some(known) = find().one(tx).await? else { return Ok(Exchanged::Invalid("an unknown code")) };
        // Whoever was first has committed once the lock is ours.
        let (Some(grant), Some(code)) = (lock(tx, known.grant_id).await?, find().one(tx).await?) else {
            return Ok(Exchanged::Invalid("the grant has ended"));
        };
        if code.used_at.is_some() {
            end(tx, grant.id).await?;
            return Ok(Exchanged::Replayed(GrantId(grant.id)));
        }
        if let Some(why) = self.complaint(&code, &grant) {
            return Ok(Exchanged::Invalid(why));
        }
        if let Some(why) = is_over(tx, &grant, self.now).await? {
            return Ok(Exchanged::Invalid(why));
        }
        if Resources::from_text(&grant.resources).check(&self.resources).is_err() {
            return Ok(Exchanged::Target);
        }
        oauth_code::Entity::update_many()
            .col_expr(oauth_code::Column::UsedAt, Expr::value(self.now.as_ms()))
            .filter(oauth_code::Column::Hash.eq(code.hash))
            .exec(tx)
            .await?;
        oauth_grant::Entity::update_many()
            .col_expr(oauth_grant::Column::ConnectedAt, Expr::value(self.now.as_ms()))
            .filter(oauth_grant::Column::Id.eq(grant.id))
            .exec(tx)
            .await?;
        let expires_at = issue(tx, &grant, &self.pair, None, self.now).await?;
        Ok(Exchanged::Issued { grant: GrantId(grant.id), expires_at })
    }
}

impl Exchange {
    /// A code that is presented wrongly is not spent: whoever it was meant for may still come.
    fn complaint(&self, code: &oauth_code::Model, grant: &oauth_grant::Model) -> Option<&'static str> {
        if code.expires_at <= self.now.as_ms() {
            Some("the code is too old")
        } else if grant.client_id != self.client.as_str() {
            Some("another client's code")
        } else if self.redirect.as_ref().is_some_and(|redirect| *redirect != code.redirect_uri) {
            Some("another redirect_uri")
        } else if code.challenge != self.challenge.as_str() {
            Some("another verifier")
        } else {
            None
        }
    }
}
