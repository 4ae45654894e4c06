//! How a starting browser meets the network: the listener that refuses everything, and where its tabs get theirs.

use std::time::Duration;

use tokio::time::timeout;

use super::shared::Setup;
use super::start::StartError;
use crate::jail::Sockets;
use crate::process::Way;
use crate::proxy::{Listener, Proxy};

/// A launcher is done in milliseconds.
const LAUNCHER_LIMIT: Duration = Duration::from_secs(10);

/// Tabs that may fail to be made before a jailed browser has no socket for the next.
const FAILED_TABS: usize = 8;

/// What a browser's listeners come from, once it has started.
pub(super) enum Entrance {
    /// The host's loopback, at any time.
    Host { proxy: Proxy, deny: Listener },
    /// Sockets that come out of its jail.
    Jail { proxy: Proxy, sockets: Sockets },
}

impl Entrance {
    /// For a browser with `spare` tabs that is expected to make `grabs` grabs, with the way it is to be started.
    pub(super) async fn prepare(setup: &Setup, spare: usize, grabs: usize) -> Result<(Self, Way<'_>), StartError> {
        let proxy = setup.proxy.clone();
        match &setup.launcher {
            None => {
                let deny = proxy.open_deny().await.map_err(|error| StartError::Proxy(error.to_string()))?;
                let way = Way::Host { deny_port: deny.port() };
                Ok((Self::Host { proxy, deny }, way))
            }
            Some(launcher) => {
                // One refuses everything, and each tab takes one, also a tab that is never lent.
                let count = grabs.saturating_add(1 + spare + FAILED_TABS).min(setup.max_sockets);
                let (sockets, input) = Sockets::expect(count).map_err(|error| StartError::Jail(error.to_string()))?;
                Ok((Self::Jail { proxy, sockets }, Way::Jail { launcher, sockets: count, input }))
            }
        }
    }

    /// The proxy for its tabs, and the listener for what the browser itself asks for. In a jail, it waits for that.
    pub(super) async fn open(self) -> Result<(Proxy, Listener), StartError> {
        match self {
            Self::Host { proxy, deny } => Ok((proxy, deny)),
            Self::Jail { proxy, sockets } => {
                let sockets = timeout(LAUNCHER_LIMIT, sockets.receive()).await;
                let sockets = sockets.unwrap_or_else(|_| Err("the launcher does not answer".into()));
                let proxy = proxy.inside(sockets.map_err(StartError::Jail)?);
                // The first socket is the one whose port the browser was told.
                let deny = proxy.open_deny().await.map_err(|error| StartError::Proxy(error.to_string()))?;
                Ok((proxy, deny))
            }
        }
    }
}
