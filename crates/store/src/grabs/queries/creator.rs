//! Who created a grab.

use grabd_domain::ids::{GrabId, TeamId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use crate::Result;
use crate::areas::Grabs;
use crate::entities::{api_key, grab, member, oauth_grant, user};

/// Who created a grab, as far as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrabCreator {
    /// The API key of this name, which may have been revoked since.
    Key(String),
    /// An API key that no longer exists.
    DeletedKey,
    /// The member with this e-mail address, in the web app.
    Member(String),
    /// A user who is no longer a member.
    FormerMember,
    /// The connected app of this name.
    App(String),
    /// An app that is no longer connected.
    DisconnectedApp,
    /// An earlier version did not record it.
    Unknown,
}

/// The ids of the key, the user and the grant. At most one is set.
type Ids = (Option<Uuid>, Option<Uuid>, Option<Uuid>);

impl Grabs<'_> {
    /// Who created a grab of this team. Names are only those of keys, members and apps of the team. At most three indexed
    /// reads.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_creator(self, team: TeamId, grab: GrabId) -> Result<GrabCreator> {
        let reader = self.store.database.reader();
        let ids = grab::Entity::find_by_id(grab.0).filter(grab::Column::TeamId.eq(team.0)).select_only();
        let ids = ids.columns([grab::Column::KeyId, grab::Column::UserId, grab::Column::GrantId]);
        let found: Option<Ids> = ids.into_tuple().one(reader).await?;
        Ok(match found.unwrap_or_default() {
            (Some(key), _, _) => {
                let key = api_key::Entity::find_by_id(key).filter(api_key::Column::TeamId.eq(team.0)).select_only();
                let name = key.column(api_key::Column::Name).into_tuple().one(reader).await?;
                name.map_or(GrabCreator::DeletedKey, GrabCreator::Key)
            }
            (None, Some(id), _) => {
                let is_member = member::Entity::find_by_id((team.0, id)).one(reader).await?.is_some();
                let email = user::Entity::find_by_id(id).select_only().column(user::Column::Email).into_tuple();
                let email: Option<String> = if is_member { email.one(reader).await? } else { None };
                email.map_or(GrabCreator::FormerMember, GrabCreator::Member)
            }
            (None, None, Some(grant)) => {
                let grant = oauth_grant::Entity::find_by_id(grant).filter(oauth_grant::Column::TeamId.eq(team.0));
                let name = grant.select_only().column(oauth_grant::Column::ClientName).into_tuple().one(reader).await?;
                name.map_or(GrabCreator::DisconnectedApp, GrabCreator::App)
            }
            (None, None, None) => GrabCreator::Unknown,
        })
    }
}
