//! What a person sees of the apps that they let act.

use grabd_domain::credentials::Environment;
use grabd_domain::ids::{GrantId, UserId};
use grabd_domain::{Fault, Timestamp};
use grabd_store::Connection;

use crate::core::{Core, inside};

/// An app that may act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectedApp {
    /// By which it is disconnected.
    pub grant: GrantId,
    /// What it calls itself: its own words, to be shown as text and never believed.
    pub client_name: String,
    /// The host at which it describes itself, if it does.
    pub client_host: Option<String>,
    /// For which team it acts,
    pub team_name: String,
    /// in which environment.
    pub environment: Environment,
    /// When it was allowed.
    pub created_at: Timestamp,
    /// When it last called, to within a few seconds.
    pub last_used_at: Option<Timestamp>,
}

/// The apps that a person lets act, the newest first.
///
/// # Errors
/// Only our own.
pub async fn list_apps(core: &Core, user: UserId) -> Result<Vec<ConnectedApp>, Fault> {
    let listed = core.store.list_connections(user, core.clock.now()).await.map_err(inside("oauth.list_apps"))?;
    Ok(listed.into_iter().map(ConnectedApp::from).collect())
}

/// Ends what an app may do, at once; `false` when it is none of this person's.
///
/// # Errors
/// Only our own.
pub async fn disconnect(core: &Core, user: UserId, grant: GrantId) -> Result<bool, Fault> {
    let ended = core.store.end_grant(user, grant).await.map_err(inside("oauth.disconnect"))?;
    if ended {
        tracing::info!(grant.id = %grant, "an app was disconnected");
    }
    Ok(ended)
}

impl From<Connection> for ConnectedApp {
    fn from(connection: Connection) -> Self {
        let Connection { grant, client_name, client_host, team_name, environment, created_at, last_used_at } =
            connection;
        Self { grant, client_name, client_host, team_name, environment, created_at, last_used_at }
    }
}
