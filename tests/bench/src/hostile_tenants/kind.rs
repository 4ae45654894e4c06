//! What hostile accounts do.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use grabd_domain::ids::TeamId;
use grabd_engine::accounts::NewTeamKeys;
use grabd_engine::clock::Clock;
use grabd_tests::site::Site;
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};

use crate::service::Service;

/// Time between two creates of an account. It does not respect `Retry-After`.
pub(super) const PAUSE: Duration = Duration::from_millis(250);

/// A kind of attack.
pub(super) struct Kind {
    /// Its name, on the command line and in the tables.
    pub(super) name: &'static str,
    /// What each account does.
    pub(super) what: &'static str,
    /// Settings of the service that the attack needs.
    pub(super) settings: &'static [(&'static str, &'static str)],
    /// Credits of each account, which nobody paid for.
    pub(super) credits: u32,
    /// Runs until the field says so.
    pub(super) attack: for<'a> fn(&'a Field, &'a NewTeamKeys) -> BoxFuture<'a, anyhow::Result<()>>,
    /// Ends what would keep the service from stopping.
    pub(super) release: fn(&Field) -> BoxFuture<'_, anyhow::Result<()>>,
}

impl Kind {
    /// A kind without settings, with one credit for each account, and nothing to release.
    pub(super) const fn new(
        name: &'static str,
        what: &'static str,
        attack: for<'a> fn(&'a Field, &'a NewTeamKeys) -> BoxFuture<'a, anyhow::Result<()>>,
    ) -> Self {
        Self { name, what, settings: &[], credits: 1, attack, release: |_| Box::pin(async { Ok(()) }) }
    }
}

/// The service that is attacked, and the site whose pages are captured.
pub(super) struct Field {
    pub(super) service: Service,
    pub(super) site: Site,
    /// The end of the attack.
    pub(super) until: Instant,
    /// The hostile teams.
    pub(super) teams: Vec<TeamId>,
}

impl Field {
    /// The address from which a hostile account sends its requests: each has its own.
    fn address_of(&self, team: &NewTeamKeys) -> IpAddr {
        let at = self.teams.iter().position(|of| *of == team.team).unwrap_or_default();
        Ipv4Addr::new(127, 0, 1, u8::try_from(at % 250).unwrap_or_default() + 1).into()
    }

    /// A client that connects from the address of a hostile account, and follows no redirects.
    pub(super) fn client_of(&self, team: &NewTeamKeys) -> anyhow::Result<reqwest::Client> {
        let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        Ok(client.local_address(self.address_of(team)).build()?)
    }

    /// A connection from the address of a hostile account.
    pub(super) async fn connect(&self, team: &NewTeamKeys) -> anyhow::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(self.address_of(team), 0))?;
        Ok(socket.connect(self.service.http_address()?).await?)
    }

    /// When a link stops working: in an hour, in seconds since 1970.
    pub(super) fn link_expiry(&self) -> String {
        (Clock::system().now().as_ms() / 1000 + 3600).to_string()
    }

    /// Captures a page of the site again and again.
    pub(super) async fn capture(&self, team: &NewTeamKeys, path: &str, mut options: Value) -> anyhow::Result<()> {
        options["url"] = json!(self.site.url(path));
        while Instant::now() < self.until {
            self.service.post(team.live.expose(), &options).await?;
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }
}
