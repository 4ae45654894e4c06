//! What hostile accounts do.

use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use grabd_engine::accounts::NewTeamKeys;
use grabd_tests::site::Site;
use serde_json::{Value, json};

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
}

impl Field {
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
