//! The apps that a user has granted access to.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{GrantId, UserId};
use grabd_domain::oauth::OauthScope;
use grabd_store::oauth::Connection;

use crate::error::Error;
use crate::service::Core;

/// An app with a valid grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectedApp {
    /// Identifies the grant when the app is disconnected.
    pub grant: GrantId,
    /// Name chosen by the app; untrusted text.
    pub client_name: String,
    /// Host of its metadata document, if it has one.
    pub client_host: Option<String>,
    /// Name of the team it acts for.
    pub team_name: String,
    /// Environment it acts in.
    pub environment: Environment,
    /// When access was granted.
    pub created_at: Timestamp,
    /// When it last sent a request, accurate to a few seconds.
    pub last_used_at: Option<Timestamp>,
    /// Whether it may also manage webhooks and delete images.
    pub manages: bool,
    /// How many webhooks it has created. They are deleted when it is disconnected.
    pub webhooks: u32,
}

/// The apps with a grant from this user, newest first.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "oauth.list_apps", skip_all)]
pub async fn list_apps(core: &Core, user: UserId) -> Result<Vec<ConnectedApp>, Error> {
    let listed = core.store.oauth().list_connections(user, core.clock.now()).await?;
    Ok(listed.into_iter().map(ConnectedApp::from).collect())
}

/// Ends a grant at once. `false` when this user has no such grant.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "oauth.disconnect", skip_all)]
pub async fn disconnect(core: &Core, user: UserId, grant: GrantId) -> Result<bool, Error> {
    let ended = core.store.oauth().end_grant(user, grant).await?;
    if ended {
        tracing::info!(grant.id = %grant, "app disconnected");
    }
    Ok(ended)
}

impl From<Connection> for ConnectedApp {
    fn from(connection: Connection) -> Self {
        let Connection {
            grant,
            client_name,
            client_host,
            team_name,
            environment,
            created_at,
            last_used_at,
            scopes,
            webhooks,
        } = connection;
        let manages = scopes.includes(OauthScope::Manage);
        Self { grant, client_name, client_host, team_name, environment, created_at, last_used_at, manages, webhooks }
    }
}
