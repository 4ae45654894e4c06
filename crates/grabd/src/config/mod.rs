//! Configuration: embedded defaults, overridden by a file, overridden by the environment, then validated as a whole.
//!
//! To add a setting, document it in `default.toml` and add its type to the file of its section.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use grabd_domain::identity::AgentUrl;
use grabd_engine::operator::LimitSettings;
use serde::Deserialize;

mod abuse;
mod accounts;
mod audit;
mod billing;
mod browser;
mod bus;
mod capture;
mod cluster;
mod database;
mod docs;
mod egress;
mod evidence;
mod grpc;
mod http;
mod images;
mod limits;
mod lists;
mod log;
mod mail;
mod mcp;
mod metrics;
mod monitors;
mod oauth;
mod origin;
mod overrides;
mod pricing;
mod problems;
mod proxies;
mod renderer;
mod retention;
mod role;
mod samples;
mod secret;
mod secrets;
mod security;
mod service;
mod sites;
mod webhooks;

pub(crate) use abuse::operations;
pub use abuse::{Abuse, Strangers};
pub use accounts::Accounts;
pub use audit::Audit;
pub use billing::Billing;
pub use browser::{Browser, RequestIdentity};
pub use bus::Bus;
pub use capture::Capture;
pub use cluster::{Cluster, TlsFiles};
pub use database::Database;
pub use docs::{Docs, SelfHosting};
pub use egress::Egress;
pub use evidence::Evidence;
pub use grpc::Grpc;
pub use http::Http;
pub use images::{Delivery, Images};
pub use limits::Limits;
pub use log::{Log, LogFormat};
pub use mail::Mail;
pub use mcp::Mcp;
pub use metrics::Metrics;
pub use monitors::Monitors;
pub use oauth::OAuth;
pub use pricing::Pricing;
pub use problems::Problems;
pub use proxies::Proxies;
pub use renderer::Renderer;
pub use retention::Retention;
pub use role::ProcessRole;
pub use samples::Samples;
pub use secret::Secret;
pub use secrets::Secrets;
pub use security::Security;
pub use service::Service;
pub use sites::Sites;
pub use webhooks::Webhooks;

use overrides::Overrides;

/// The defaults, which document all settings.
pub const DEFAULT: &str = include_str!("default.toml");

/// All settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Config {
    /// Variables of the environment that begin like a setting and are none, such as those of other programs.
    #[serde(skip)]
    pub foreign_variables: Vec<String>,
    pub data_dir: PathBuf,
    pub role: ProcessRole,
    pub abuse: Abuse,
    pub audit: Audit,
    pub http: Http,
    pub grpc: Grpc,
    pub metrics: Metrics,
    pub mcp: Mcp,
    pub database: Database,
    pub cluster: Cluster,
    pub bus: Bus,
    pub renderer: Renderer,
    pub egress: Egress,
    pub limits: Limits,
    pub browser: Browser,
    pub capture: Capture,
    pub accounts: Accounts,
    pub oauth: OAuth,
    pub mail: Mail,
    pub webhooks: Webhooks,
    pub monitors: Monitors,
    pub evidence: Evidence,
    pub proxies: Proxies,
    pub sites: Sites,
    pub secrets: Secrets,
    pub security: Security,
    pub pricing: Pricing,
    pub billing: Billing,
    pub images: Images,
    pub retention: Retention,
    pub samples: Samples,
    pub service: Service,
    pub docs: Docs,
    pub log: Log,
}

impl Config {
    /// Loads the defaults, overridden by `file`, by the environment and by `role`.
    ///
    /// # Errors
    /// All problems, each with its key and the allowed values.
    pub fn load(file: Option<&Path>, role: Option<ProcessRole>) -> Result<Self, Problems> {
        let mut overrides = Overrides::default();
        if let Some(file) = file {
            if !file.is_file() {
                return Err(Problems::one("--config", &file.display().to_string(), "a file that exists"));
            }
            overrides.add_file(file)?;
        }
        overrides.add_credentials(DEFAULT)?;
        overrides.add_environment(DEFAULT);
        if let Some(role) = role {
            overrides.add("role", role.as_str(), "--role");
        }
        Self::of(overrides)
    }

    /// The defaults, overridden by these keys (`http.listen`), without the environment. For tests and tools.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn with(overlay: &BTreeMap<&str, String>) -> Result<Self, Problems> {
        let mut overrides = Overrides::default();
        for (key, value) in overlay {
            match (value.parse::<i64>(), value.parse::<bool>()) {
                (Ok(number), _) => overrides.add(key, number, "the overlay"),
                (_, Ok(switch)) => overrides.add(key, switch, "the overlay"),
                (Err(_), Err(_)) => overrides.add(key, value.as_str(), "the overlay"),
            }
        }
        Self::of(overrides)
    }

    /// The configuration with these values.
    fn of(overrides: Overrides) -> Result<Self, Problems> {
        let (values, mut problems) =
            overrides.apply(DEFAULT, |values| values.extract::<Self>().map(drop).map_err(Box::new));
        let mut config: Self = values.extract().map_err(Problems::from)?;
        problems.append(config.validate().err());
        config.foreign_variables = overrides.into_foreign();
        problems.into_result().map(|()| config)
    }

    /// Each section validates itself, and the role with the sections that it needs.
    fn validate(&self) -> Result<(), Problems> {
        let mut problems = Problems::default();
        self.http.validate(&mut problems);
        self.grpc.validate(&mut problems);
        self.mcp.validate(&mut problems);
        self.database.validate(&mut problems);
        let checked = cluster::Checked {
            role: self.role,
            cluster: &self.cluster,
            renderer: &self.renderer,
            is_postgres: self.database.is_postgres(),
            has_key_file: !self.secrets.key_file.as_os_str().is_empty(),
            has_public_url: !self.http.public_url.is_empty(),
            has_images_url: self.images.location().is_some(),
        };
        checked.validate(&mut problems);
        self.bus.validate(self.cluster.enabled, &mut problems);
        self.egress.validate(&mut problems);
        self.limits.validate(&mut problems);
        self.monitors.validate(&mut problems);
        self.evidence.validate(&mut problems);
        self.sites.validate(&mut problems);
        self.abuse.validate(&mut problems);
        self.browser.validate(&self.http.public_url, &mut problems);
        self.capture.validate(&mut problems);
        self.images.validate(&mut problems);
        self.accounts.validate(&self.mail, &mut problems);
        self.oauth.validate(&mut problems);
        self.mail.validate(&mut problems);
        self.billing.validate(&mut problems);
        self.retention.validate(&mut problems);
        self.samples.validate(&mut problems);
        self.service.validate(&mut problems);
        self.audit.validate(&mut problems);
        problems.into_result()
    }

    /// The public origin, without a trailing slash.
    pub fn public_url(&self, listening: SocketAddr) -> String {
        match self.http.public_url.is_empty() {
            true => format!("http://{listening}"),
            false => self.http.public_url.trim_end_matches('/').to_owned(),
        }
    }

    /// The origin under which the keys of signatures are published. `None` if requests to sites are not signed.
    pub fn agent(&self) -> Option<AgentUrl> {
        self.browser.agent(&self.http.public_url)
    }

    /// OAuth settings, derived from the public URL by default.
    pub fn oauth(&self, public_url: &str) -> grabd_engine::oauth::Settings {
        self.oauth.settings(public_url)
    }

    /// The database URL. By default, SQLite in the data directory.
    pub fn database_url(&self) -> String {
        match self.database.url.expose() {
            "" => format!("sqlite://{}", self.data_dir.join("grabd.db").display()),
            url => url.to_owned(),
        }
    }

    /// The limits of teams without an override.
    pub fn limit_settings(&self) -> LimitSettings {
        LimitSettings {
            requests_per_minute: self.limits.requests_per_minute,
            async_queue: self.limits.async_queue,
            abuse: self.abuse.admission(self.is_open()),
            retention: self.retention.settings(),
        }
    }

    /// Whether users whom the operator does not know can use the service: they can sign up or buy credits.
    pub fn is_open(&self) -> bool {
        self.accounts.sign_up || !self.billing.top_up.is_empty() || !self.billing.stripe_secret_key.expose().is_empty()
    }

    /// Concurrent grabs.
    pub fn slots(&self) -> usize {
        match self.browser.slots {
            0 => std::thread::available_parallelism().map_or(2, |cores| (2 * cores.get()).clamp(2, 16)),
            slots => slots,
        }
    }

    /// Maximum time for a page to settle.
    pub const fn settle(&self) -> Duration {
        Duration::from_millis(self.browser.settle_ms)
    }
}

#[cfg(test)]
mod tests;
