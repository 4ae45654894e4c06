//! The network of a new browser: the listener that refuses everything, and the source of its tabs' listeners.

use std::time::Duration;

use tokio::time::timeout;

use super::setup::Setup;
use super::start::StartError;
use crate::jail::Sockets;
use crate::process::Network;
use crate::proxy::{Listener, Proxy};

/// The launcher takes milliseconds.
const LAUNCHER_LIMIT: Duration = Duration::from_secs(10);

/// Sockets for tabs that fail.
const SPARE_SOCKETS: usize = 8;

/// The source of a browser's listeners.
pub(super) enum NetworkSetup {
    /// Listeners on the host's loopback, opened when needed.
    Host { proxy: Proxy, deny: Listener },
    /// Sockets that the launcher opens in the jail.
    Jail { proxy: Proxy, sockets: Sockets },
}

impl NetworkSetup {
    /// Prepares the network of a browser with `spare` tabs that is expected to make `grabs` grabs.
    pub(super) async fn prepare(setup: &Setup, spare: usize, grabs: usize) -> Result<(Self, Network<'_>), StartError> {
        let proxy = setup.proxy.clone();
        match &setup.launcher {
            None => {
                let deny = proxy.open_deny().await.map_err(|error| StartError::Proxy(error.to_string()))?;
                let network = Network::Host { deny_port: deny.port() };
                Ok((Self::Host { proxy, deny }, network))
            }
            Some(launcher) => {
                // One socket refuses everything, and each tab takes one, even if it is never leased.
                let count = grabs.saturating_add(1 + spare + SPARE_SOCKETS).min(setup.max_sockets);
                let (sockets, input) = Sockets::expect(count).map_err(|error| StartError::Jail(error.to_string()))?;
                Ok((Self::Jail { proxy, sockets }, Network::Jail { launcher, sockets: count, input }))
            }
        }
    }

    /// Returns the proxy for the tabs and the listener that refuses the browser's own requests. Waits for the sockets
    /// of a jail.
    pub(super) async fn open(self) -> Result<(Proxy, Listener), StartError> {
        match self {
            Self::Host { proxy, deny } => Ok((proxy, deny)),
            Self::Jail { proxy, sockets } => {
                let sockets = timeout(LAUNCHER_LIMIT, sockets.receive()).await;
                let sockets = sockets.unwrap_or_else(|_| Err("the launcher does not answer".into()));
                let proxy = proxy.inside(sockets.map_err(StartError::Jail)?);
                // The browser was started with the port of the first socket.
                let deny = proxy.open_deny().await.map_err(|error| StartError::Proxy(error.to_string()))?;
                Ok((proxy, deny))
            }
        }
    }
}
