//! A whole service for a test: real database, real browser, its own data directory, gone afterwards.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use anyhow::Context;
use grabd::config::Config;
use grabd::serve::{Patience, Service};
use grabd_domain::accounts::Email;
use grabd_edge::transport;
use grabd_engine::accounts::{self, NewTeamKeys};
use grabd_engine::clock::Clock;
use grabd_store::Place;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use crate::remains::nothing_remains;
use crate::site::Site;

/// The address of pages that captures may reach.
pub const ALLOWED: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
/// The address of pages that they may not.
pub const REFUSED: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));

/// Good for every person.
pub const PASSWORD: &str = "a password that nobody guesses";

/// A running service with a fixture site beside it and one team in it.
pub struct Harness {
    /// The service.
    pub service: Service,
    /// The site, on [`ALLOWED`].
    pub site: Site,
    /// The team and its keys.
    pub team: NewTeamKeys,
    /// A client without any cleverness.
    pub client: reqwest::Client,
    settings: BTreeMap<&'static str, String>,
    dir: tempfile::TempDir,
}

impl Harness {
    /// Starts everything, with `credits` for the team and these settings on top of the defaults.
    pub async fn start(credits: u32, overlay: &[(&'static str, &str)]) -> anyhow::Result<Self> {
        Self::start_with(credits, overlay, Patience::default()).await
    }

    /// The same with listeners of another patience.
    pub async fn start_with(
        credits: u32,
        overlay: &[(&'static str, &str)],
        patience: Patience,
    ) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let site = Site::start(ALLOWED).await?;
        let mut settings: BTreeMap<&'static str, String> = BTreeMap::from([
            ("data_dir", dir.path().join("data").display().to_string()),
            ("http.listen", "127.0.0.1:0".to_owned()),
            ("grpc.listen", "127.0.0.1:0".to_owned()),
            ("metrics.listen", "127.0.0.1:0".to_owned()),
            ("egress.allow_cidrs", format!("{ALLOWED}/32")),
            // Nobody listens there: a name that is looked up by mistake ends quickly and reaches nobody.
            ("egress.dns", "127.0.0.1:9".to_owned()),
            ("limits.requests_per_minute", "100000".to_owned()),
        ]);
        settings.extend(overlay.iter().map(|(key, value)| (*key, (*value).to_owned())));
        let config = Config::with(&settings)?;
        let service = Service::start_with(&config, None, patience).await?;
        let team = accounts::create_team(service.store(), "the test's", credits, Clock::system().now()).await?;
        let client = crate::client::client().redirect(reqwest::redirect::Policy::none()).build()?;
        Ok(Self { service, site, team, client, settings, dir })
    }

    /// The same service in a new life: drained, and started again on what it left behind.
    pub async fn restart(self) -> anyhow::Result<Self> {
        let Self { service, site, team, client, settings, dir } = self;
        service.drain().await;
        let service = Service::start(&Config::with(&settings)?, None).await?;
        Ok(Self { service, site, team, client, settings, dir })
    }

    /// The API root, ending in `/v1`.
    pub fn base(&self) -> String {
        format!("http://{}/v1", self.service.http())
    }

    /// A second REST face that reaches the core over a channel instead of in process; its API root.
    pub async fn base_over_a_channel(&self) -> anyhow::Result<String> {
        let channel =
            tonic::transport::Endpoint::try_from(format!("http://{}", self.service.grpc()))?.connect().await?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let base = format!("http://{}/v1", listener.local_addr()?);
        let options = grabd_edge::Options {
            public_url: self.service.public_url().to_owned(),
            requests_per_minute: 100_000,
            async_queue_limit: 50,
            trusted_proxies: Vec::new(),
        };
        let router = grabd_edge::router(transport::channel(channel), options);
        let service = router.into_make_service_with_connect_info::<std::net::SocketAddr>();
        // Ends with the test's own runtime.
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

    /// Makes a person of the team, who signs in with this e-mail address and [`PASSWORD`].
    pub async fn welcome(&self, email: &str) -> anyhow::Result<()> {
        let (email, place) = (Email::parse(email)?, Place::In(self.team.team));
        let now = Clock::system().now();
        accounts::create_person(self.service.store(), &email, PASSWORD, place, now).await?;
        Ok(())
    }

    /// Creates a grab with the live key; status and body.
    pub async fn create(&self, body: Value) -> anyhow::Result<(u16, Value)> {
        let request = self.client.post(format!("{}/grabs", self.base())).bearer_auth(self.live()).json(&body);
        let response = request.send().await?;
        let status = response.status().as_u16();
        Ok((status, response.json().await?))
    }

    /// Captures a page of the site with the live key, which must succeed; the Grab and the picture.
    pub async fn capture(&self, path: &str, mut options: Value) -> anyhow::Result<(Value, Vec<u8>)> {
        options["url"] = json!(self.site.url(path));
        let (status, grab) = self.create(options).await?;
        anyhow::ensure!(status == 200, "{path}: {status} {grab}");
        let url = grab["image_url"].as_str().context("a done grab has an image_url")?;
        let image = self.client.get(url).send().await?.error_for_status()?.bytes().await?;
        Ok((grab, image.to_vec()))
    }

    /// Reads the API with a key; status and body.
    pub async fn get(&self, path: &str, key: &str) -> anyhow::Result<(u16, Value)> {
        let response = self.client.get(format!("{}{path}", self.base())).bearer_auth(key).send().await?;
        let status = response.status().as_u16();
        Ok((status, response.json().await?))
    }

    /// Where the service keeps its data.
    pub fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Drains the service and checks what must hold after every test: the books balance, no grab is leased, each
    /// picture belongs to a grab, and neither a process nor a directory of a browser remains.
    pub async fn finish(self) -> anyhow::Result<()> {
        let drift = self.service.store().verify_ledger().await?;
        anyhow::ensure!(drift.is_empty(), "the books do not balance: {drift:?}");
        self.service.drain().await;
        nothing_remains(&Config::with(&self.settings)?).await
    }
}
