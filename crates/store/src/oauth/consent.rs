//! Records a user's consent that an app may access a team.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{GrantId, TeamId, UserId};
use grabd_domain::oauth::{CODE_LIFE, Challenge, ClientId, GRANT_LIFE, GRANTS, OauthScopes, RedirectUri, Resources};
use grabd_domain::permissions::Permission;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, Func, LockType};
use sea_orm::{ColumnTrait, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::{is_active, touch_client};
use crate::areas::OAuth;
use crate::database::{Transaction, Tx};
use crate::entities::{member, oauth_code, oauth_grant};
use crate::{Result, codes};

/// A grant to create, with its authorization code. Contains only a hash of the code.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the domain types document the fields")]
pub struct NewConsent {
    pub grant: GrantId,
    pub user: UserId,
    pub team: TeamId,
    pub environment: Environment,
    pub client: ClientId,
    pub client_name: String,
    pub client_host: Option<String>,
    pub scopes: OauthScopes,
    pub resources: Resources,
    /// SHA-256 of the code.
    pub code: [u8; 32],
    pub redirect: RedirectUri,
    pub challenge: Challenge,
    pub now: Timestamp,
}

/// Outcome of a consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsentOutcome {
    /// The grant was created, and the code can be exchanged.
    Granted,
    /// Nothing was written: the user is not a member of the team, or the team is inactive.
    NotMember,
    /// Nothing was written: the user's role in the team does not allow apps.
    NotAllowed,
}

impl OAuth<'_> {
    /// Records a consent.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn consent(self, consent: NewConsent) -> Result<ConsentOutcome> {
        self.store.database.write(consent).await
    }
}

impl Transaction for NewConsent {
    type Outcome = ConsentOutcome;

    async fn apply(&self, tx: &Tx) -> Result<ConsentOutcome> {
        // Locked, so that the role cannot change until the grant exists, which a change of the role ends.
        let membership = member::Entity::find_by_id((self.team.0, self.user.0)).lock(LockType::Share).one(tx).await?;
        let Some(membership) = membership else { return Ok(ConsentOutcome::NotMember) };
        if !is_active(tx, self.team).await? {
            return Ok(ConsentOutcome::NotMember);
        }
        if !codes::read_role(membership.role)?.allows(Permission::ConnectApps) {
            return Ok(ConsentOutcome::NotAllowed);
        }
        let grant = oauth_grant::ActiveModel {
            id: Set(self.grant.0),
            team_id: Set(self.team.0),
            user_id: Set(self.user.0),
            env: Set(codes::environment(self.environment)),
            client_id: Set(self.client.to_string()),
            client_name: Set(self.client_name.clone()),
            client_host: Set(self.client_host.clone()),
            resources: Set(self.resources.to_text()),
            created_at: Set(self.now.as_ms()),
            expires_at: Set((self.now + GRANT_LIFE).as_ms()),
            connected_at: Set(None),
            last_used_at: Set(None),
            scopes: Set(codes::oauth_scopes(self.scopes)),
        };
        oauth_grant::Entity::insert(grant).exec_without_returning(tx).await?;
        self.end_oldest_grants(tx).await?;
        let code = oauth_code::ActiveModel {
            hash: Set(self.code.to_vec()),
            grant_id: Set(self.grant.0),
            redirect_uri: Set(self.redirect.to_string()),
            challenge: Set(self.challenge.as_str().to_owned()),
            expires_at: Set((self.now + CODE_LIFE).as_ms()),
            used_at: Set(None),
        };
        oauth_code::Entity::insert(code).exec_without_returning(tx).await?;
        touch_client(tx, self.client.as_str(), self.now).await?;
        Ok(ConsentOutcome::Granted)
    }
}

impl NewConsent {
    /// Ends the grants of the user beyond [`GRANTS`], with their codes and tokens. Concurrent consents may leave a few
    /// more for a moment.
    async fn end_oldest_grants(&self, tx: &Tx) -> Result<()> {
        let last_use =
            Func::coalesce([Expr::col(oauth_grant::Column::LastUsedAt), Expr::col(oauth_grant::Column::CreatedAt)]);
        let oldest: Vec<Uuid> = oauth_grant::Entity::find()
            .select_only()
            .column(oauth_grant::Column::Id)
            .filter(oauth_grant::Column::UserId.eq(self.user.0))
            .order_by(last_use, Order::Desc)
            .order_by_desc(oauth_grant::Column::Id)
            .offset(GRANTS)
            .limit(GRANTS)
            .into_tuple()
            .all(tx)
            .await?;
        if !oldest.is_empty() {
            oauth_grant::Entity::delete_many().filter(oauth_grant::Column::Id.is_in(oldest)).exec(tx).await?;
        }
        Ok(())
    }
}
