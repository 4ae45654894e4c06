//! The whole service for a test: a real database, a real browser unless nothing is captured, and a data directory that
//! is deleted afterwards.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use anyhow::Context;
use grabd::config::Config;
use grabd::serve::{Rendering, Service, Timeouts};
use grabd_domain::accounts::Email;
use grabd_edge::transport;
use grabd_engine::accounts::{self, NewTeamKeys};
use grabd_engine::clock::Clock;
use grabd_store::accounts::InitialTeam;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use crate::client::Client;
use crate::contract::ApiError;
use crate::leftovers::check_no_leftovers;
use crate::site::Site;

#[path = "../../crates/store/tests/store/harness/migrated_file.rs"]
#[expect(clippy::unwrap_used, reason = "shared with the tests of the store")]
mod migrated_file;

/// The address of the pages that captures may reach.
pub const ALLOWED: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
/// An address that captures may not reach.
pub const REFUSED: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));

/// The password of every test user.
pub const PASSWORD: &str = "a password that nobody guesses";

/// A running service, the fixture site, and one team.
pub struct TestApp {
    /// The service.
    pub service: Service,
    /// The fixture site, on [`ALLOWED`].
    pub site: Site,
    /// The team and its keys.
    pub team: NewTeamKeys,
    /// A client that does not follow redirects.
    pub client: Client,
    settings: BTreeMap<&'static str, String>,
    rendering: Rendering,
    dir: tempfile::TempDir,
}

impl TestApp {
    /// Starts the service with `credits` for the team. `overlay` overrides the default settings.
    pub async fn start(credits: u32, overlay: &[(&'static str, &str)]) -> anyhow::Result<Self> {
        Self::start_with(credits, overlay, Timeouts::default(), Rendering::Chromium).await
    }

    /// Like [`TestApp::start`], but without a browser, which takes seconds to start and test itself. Only test keys can
    /// capture; grabs of live keys stay queued.
    pub async fn start_without_browser(credits: u32, overlay: &[(&'static str, &str)]) -> anyhow::Result<Self> {
        Self::start_with(credits, overlay, Timeouts::default(), Rendering::None).await
    }

    /// Like [`TestApp::start`], with these listener timeouts, with or without a browser.
    pub async fn start_with(
        credits: u32,
        overlay: &[(&'static str, &str)],
        timeouts: Timeouts,
        rendering: Rendering,
    ) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let site = Site::start(ALLOWED).await?;
        let mut settings: BTreeMap<&'static str, String> = BTreeMap::from([
            ("data_dir", dir.path().join("data").display().to_string()),
            ("http.listen", "127.0.0.1:0".to_owned()),
            ("grpc.listen", "127.0.0.1:0".to_owned()),
            ("metrics.listen", "127.0.0.1:0".to_owned()),
            ("egress.allow_cidrs", format!("{ALLOWED}/32")),
            // Nothing listens on this port, so that an unintended lookup fails quickly.
            ("egress.dns", "127.0.0.1:9".to_owned()),
            ("limits.requests_per_minute", "100000".to_owned()),
            // Most tests capture pages that fail, with a team that never paid.
            ("abuse.failed_seconds_per_minute_unpaid", "100000".to_owned()),
            // Tests also run on machines whose disk is almost full.
            ("retention.min_free_percent", "0".to_owned()),
        ]);
        settings.extend(overlay.iter().map(|(key, value)| (*key, (*value).to_owned())));
        let config = Config::with(&settings)?;
        if !settings.contains_key("database.url") && !config.data_dir.exists() {
            std::fs::create_dir(&config.data_dir)?;
            migrated_file::copy_to(&config.data_dir.join("grabd.db")).await;
        }
        let service = Service::start_with(&config, None, timeouts, rendering).await?;
        let team = accounts::create_team(service.store(), "the test's", credits, Clock::system().now()).await?;
        let client = crate::client::client().redirect(reqwest::redirect::Policy::none()).build()?;
        Ok(Self { service, site, team, client, settings, rendering, dir })
    }

    /// Drains the service and starts it again on the same data directory.
    pub async fn restart(self) -> anyhow::Result<Self> {
        self.restart_with(&[]).await
    }

    /// Like [`TestApp::restart`], after a start with settings that must be refused. Returns the text of that error.
    pub async fn restart_refused(self, overlay: &[(&'static str, &str)]) -> anyhow::Result<(Self, String)> {
        let mut refused = self.settings.clone();
        refused.extend(overlay.iter().map(|(key, value)| (*key, (*value).to_owned())));
        let Self { service, site, team, client, settings, rendering, dir } = self;
        service.drain().await;
        let started = Service::start_with(&Config::with(&refused)?, None, Timeouts::default(), rendering).await;
        let error = started.err().context("the service starts")?;
        let service = Service::start_with(&Config::with(&settings)?, None, Timeouts::default(), rendering).await?;
        Ok((Self { service, site, team, client, settings, rendering, dir }, format!("{error:#}")))
    }

    /// Like [`TestApp::restart`], with some other settings, which later restarts keep.
    pub async fn restart_with(self, overlay: &[(&'static str, &str)]) -> anyhow::Result<Self> {
        let Self { service, site, team, client, mut settings, rendering, dir } = self;
        settings.extend(overlay.iter().map(|(key, value)| (*key, (*value).to_owned())));
        service.drain().await;
        let config = Config::with(&settings)?;
        let service = Service::start_with(&config, None, Timeouts::default(), rendering).await?;
        Ok(Self { service, site, team, client, settings, rendering, dir })
    }

    /// The API root, ending in `/v1`.
    pub fn base(&self) -> String {
        format!("http://{}/v1", self.service.http())
    }

    /// Starts a second REST server that reaches the core over gRPC instead of in process. Returns its API root.
    pub async fn base_over_grpc(&self) -> anyhow::Result<String> {
        let channel =
            tonic::transport::Endpoint::try_from(format!("http://{}", self.service.grpc()))?.connect().await?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let base = format!("http://{}/v1", listener.local_addr()?);
        let options = grabd_edge::Options {
            public_url: self.service.public_url().to_owned(),
            auth_url: self.service.public_url().to_owned(),
            requests_per_minute: 100_000,
            async_queue_limit: 50,
            trusted_proxies: Vec::new(),
            images: self.service.router(),
            memory: self.service.core().image_memory().clone(),
        };
        let router = grabd_edge::router(transport::channel(channel), options);
        let service = router.into_make_service_with_connect_info::<std::net::SocketAddr>();
        // Stops with the test's runtime.
        TaskTracker::new().spawn(async move { axum::serve(listener, service).await });
        Ok(base)
    }

    /// The live key.
    pub fn live(&self) -> &str {
        self.team.live.expose()
    }

    /// The test key.
    pub fn test(&self) -> &str {
        self.team.test.expose()
    }

    /// Creates a member of the team who signs in with this e-mail address and [`PASSWORD`].
    pub async fn create_member(&self, email: &str) -> anyhow::Result<()> {
        let (email, place) = (Email::parse(email)?, InitialTeam::Existing(self.team.team));
        let now = Clock::system().now();
        accounts::create_user(self.service.store(), &email, PASSWORD, place, now).await?;
        Ok(())
    }

    /// Creates a grab with the live key. Returns status and body.
    pub async fn create(&self, body: Value) -> anyhow::Result<(u16, Value)> {
        let request = self.client.post(format!("{}/grabs", self.base())).bearer_auth(self.live()).json(&body);
        let response = request.send().await?;
        let status = response.status().as_u16();
        Ok((status, response.json().await?))
    }

    /// Creates a grab with the live key, which must be refused or fail.
    pub async fn create_refused(&self, body: Value) -> anyhow::Result<ApiError> {
        let request = self.client.post(format!("{}/grabs", self.base())).bearer_auth(self.live()).json(&body);
        ApiError::read(request.send().await?).await
    }

    /// Captures a page of the site with the live key and fails if that fails. Returns the grab and the image.
    pub async fn capture(&self, path: &str, mut options: Value) -> anyhow::Result<(Value, Vec<u8>)> {
        options["url"] = json!(self.site.url(path));
        let (status, grab) = self.create(options).await?;
        anyhow::ensure!(status == 200, "{path}: {status} {grab}");
        let url = grab["image_url"].as_str().context("a done grab has an image_url")?;
        let image = self.client.get(url).send().await?.error_for_status()?.bytes().await?;
        Ok((grab, image.to_vec()))
    }

    /// Sends a GET request with a key. Returns status and body.
    pub async fn get(&self, path: &str, key: &str) -> anyhow::Result<(u16, Value)> {
        let response = self.client.get(format!("{}{path}", self.base())).bearer_auth(key).send().await?;
        let status = response.status().as_u16();
        Ok((status, response.json().await?))
    }

    /// The data directory of the service.
    pub fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Drains the service and checks what must hold after every test: the ledger balances, no grab is leased, each
    /// image belongs to a grab, and no browser process or directory remains.
    pub async fn finish(self) -> anyhow::Result<()> {
        let drift = self.service.store().credits().verify_ledger().await?;
        anyhow::ensure!(drift.is_empty(), "the ledger does not balance: {drift:?}");
        self.service.drain().await;
        check_no_leftovers(&Config::with(&self.settings)?).await
    }
}
