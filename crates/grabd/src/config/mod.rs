//! Configuration: embedded defaults, overridden by a file, overridden by the environment, then validated as a whole.
//!
//! To add a setting, document it in `default.toml` and add its type here.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use grabd_browser::{FrameMode, NetworkJail};
use grabd_engine::mail::{self, Server, Smtp};
use grabd_engine::operator::LimitSettings;
use ipnet::IpNet;
use serde::Deserialize;

mod abuse;
mod billing;
mod bus;
mod cluster;
mod images;
mod lists;
mod origin;
mod overrides;
mod problems;
mod retention;
mod samples;
mod secret;
mod security;

pub(crate) use abuse::operations;
pub use abuse::{Abuse, Audit, Strangers};
pub use billing::Billing;
pub use bus::Bus;
pub use cluster::{Cluster, ProcessRole, Renderer, TlsFiles};
pub use images::{Delivery, Images};
pub use problems::Problems;
pub use retention::Retention;
pub use samples::Samples;
pub use secret::Secret;
pub use security::Security;

use origin::{is_origin, is_secure};
use overrides::Overrides;

/// After a few minutes, no client is still waiting for a lost response.
const MAX_REUSE_GRACE_S: u64 = 300;
/// More is a mistake: everybody who signs up gets them.
const MAX_TRIAL_CREDITS: u32 = 100_000;

/// The largest image file that a full page of 1920 x 16384 pixels can have.
const MAX_IMAGE_MEGABYTES: u64 = 126;
/// More is a mistake rather than a need: a hundred images of the maximum size.
const MAX_MEMORY_MEGABYTES: u64 = 16_384;

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
    pub secrets: Secrets,
    pub security: Security,
    pub pricing: Pricing,
    pub billing: Billing,
    pub images: Images,
    pub retention: Retention,
    pub samples: Samples,
    pub log: Log,
}

/// Section `http`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Http {
    pub listen: SocketAddr,
    pub public_url: String,
    #[serde(deserialize_with = "lists::list")]
    pub trusted_proxies: Vec<IpNet>,
    pub connections_per_address: usize,
    pub requests_per_address: usize,
    pub security_contact: String,
}

/// Section `grpc`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Grpc {
    pub listen: SocketAddr,
    pub connections_per_address: usize,
    pub calls_per_address: usize,
    pub reflection: bool,
}

/// Section `metrics`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Metrics {
    pub listen: SocketAddr,
}

/// Section `mcp`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Mcp {
    #[serde(deserialize_with = "lists::list")]
    pub allowed_origins: Vec<String>,
}

/// Section `database`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Database {
    pub url: Secret,
}

/// Section `egress`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Egress {
    #[serde(deserialize_with = "lists::list")]
    pub allow_cidrs: Vec<IpNet>,
    #[serde(deserialize_with = "lists::list")]
    pub deny_cidrs: Vec<IpNet>,
    #[serde(deserialize_with = "lists::list")]
    pub dns: Vec<SocketAddr>,
    pub lookup_timeout_ms: u64,
    pub connect_timeout_ms: u64,
}

/// Section `limits`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Limits {
    pub requests_per_minute: u32,
    pub async_queue: u32,
    pub connections: u32,
}

/// Section `browser`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Browser {
    pub executable: PathBuf,
    pub program_cache: PathBuf,
    pub slots: usize,
    pub user: String,
    pub run_dir: PathBuf,
    pub network_jail: NetworkJail,
    pub frame: FrameMode,
    pub settle_ms: u64,
    pub recycle_grabs: u32,
    pub recycle_seconds: u64,
    pub recycle_megabytes: u64,
    pub memory_limit_megabytes: u64,
    pub process_limit: u32,
    pub user_agent: String,
    pub filter_lists: PathBuf,
}

/// The most characters that are appended to the User-Agent.
const MAX_USER_AGENT: usize = 200;

/// Section `capture`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Capture {
    pub full_page_max_height_px: u32,
    pub image_max_megabytes: u64,
    pub image_memory_megabytes: u64,
}

/// Section `accounts`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Accounts {
    pub sign_up: bool,
    pub trial_credits: u32,
}

/// Section `oauth`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct OAuth {
    pub auth_url: String,
    pub mcp_url: String,
    pub refresh_reuse_grace_s: u64,
    pub registrations_per_hour: u32,
    pub unused_clients: u32,
}

/// Section `mail`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Mail {
    pub smtp_url: Secret,
    pub from: String,
    pub ca_file: PathBuf,
}

/// Section `webhooks`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Webhooks {
    pub allow_http: bool,
    pub ca_file: PathBuf,
}

/// Section `secrets`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Secrets {
    pub key_file: PathBuf,
}

/// Section `pricing`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Pricing {
    pub file: PathBuf,
}

/// Section `log`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Log {
    pub format: LogFormat,
    pub filter: String,
}

/// Log format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum LogFormat {
    Text,
    Json,
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

    fn validate(&self) -> Result<(), Problems> {
        let mut problems = Problems::default();
        let mut at_least_one = |key, value: u64| {
            if value == 0 {
                problems.add(key, "0", "at least 1");
            }
        };
        at_least_one("limits.requests_per_minute", self.limits.requests_per_minute.into());
        at_least_one("limits.async_queue", self.limits.async_queue.into());
        at_least_one("limits.connections", self.limits.connections.into());
        at_least_one("abuse.failed_seconds_per_minute", self.abuse.failed_seconds_per_minute.into());
        at_least_one("abuse.failed_seconds_per_minute_unpaid", self.abuse.failed_seconds_per_minute_unpaid.into());
        at_least_one("http.connections_per_address", self.http.connections_per_address as u64);
        at_least_one("http.requests_per_address", self.http.requests_per_address as u64);
        at_least_one("grpc.connections_per_address", self.grpc.connections_per_address as u64);
        at_least_one("grpc.calls_per_address", self.grpc.calls_per_address as u64);
        at_least_one("oauth.registrations_per_hour", self.oauth.registrations_per_hour.into());
        at_least_one("oauth.unused_clients", self.oauth.unused_clients.into());
        at_least_one("egress.lookup_timeout_ms", self.egress.lookup_timeout_ms);
        at_least_one("egress.connect_timeout_ms", self.egress.connect_timeout_ms);
        at_least_one("browser.settle_ms", self.browser.settle_ms);
        at_least_one("browser.recycle_grabs", self.browser.recycle_grabs.into());
        at_least_one("browser.recycle_seconds", self.browser.recycle_seconds);
        at_least_one("browser.recycle_megabytes", self.browser.recycle_megabytes);
        let trial_credits = self.accounts.trial_credits;
        if trial_credits > 0 && self.mail.smtp_url.expose().is_empty() {
            let allowed = "0 without mail.smtp_url, since e-mail addresses are not verified then";
            problems.add("accounts.trial_credits", &trial_credits.to_string(), allowed);
        } else if trial_credits > MAX_TRIAL_CREDITS {
            let allowed = format!("at most {MAX_TRIAL_CREDITS}");
            problems.add("accounts.trial_credits", &trial_credits.to_string(), &allowed);
        }
        if self.abuse.paid_slots_percent > 100 {
            problems.add("abuse.paid_slots_percent", &self.abuse.paid_slots_percent.to_string(), "at most 100");
        }
        if self.browser.memory_limit_megabytes < 512 {
            problems.add(
                "browser.memory_limit_megabytes",
                &self.browser.memory_limit_megabytes.to_string(),
                "at least 512",
            );
        }
        if self.browser.process_limit < 200 {
            problems.add("browser.process_limit", &self.browser.process_limit.to_string(), "at least 200");
        }
        let token = &self.browser.user_agent;
        if token.len() > MAX_USER_AGENT || !token.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            let allowed = format!("at most {MAX_USER_AGENT} printable ASCII characters");
            problems.add("browser.user_agent", token, &allowed);
        }
        let height = self.capture.full_page_max_height_px;
        if !(1080..=16_384).contains(&height) {
            problems.add("capture.full_page_max_height_px", &height.to_string(), "from 1080 to 16384");
        }
        let Capture { image_max_megabytes: image, image_memory_megabytes: memory, .. } = self.capture;
        if !(1..=MAX_IMAGE_MEGABYTES).contains(&image) {
            let allowed = format!("from 1 to {MAX_IMAGE_MEGABYTES}");
            problems.add("capture.image_max_megabytes", &image.to_string(), &allowed);
        } else if !(2 * image..=MAX_MEMORY_MEGABYTES).contains(&memory) {
            let allowed = format!("from {}, twice capture.image_max_megabytes, to {MAX_MEMORY_MEGABYTES}", 2 * image);
            problems.add("capture.image_memory_megabytes", &memory.to_string(), &allowed);
        }
        if self.browser.slots > 64 {
            problems.add("browser.slots", &self.browser.slots.to_string(), "at most 64");
        }
        let url = &self.http.public_url;
        if !url.is_empty() && !is_origin(url) {
            problems.add("http.public_url", url, "an http(s) origin such as https://grabs.example.com, without a path");
        }
        for origin in self.mcp.allowed_origins.iter().filter(|origin| !is_origin(origin)) {
            problems.add(
                "mcp.allowed_origins",
                origin,
                "http(s) origins such as https://app.example.com, without a path",
            );
        }
        self.oauth.validate(&mut problems);
        self.mail.validate(&mut problems);
        let contact = &self.http.security_contact;
        let is_contact = ["mailto:", "https://", "tel:"].iter().any(|scheme| contact.starts_with(scheme))
            && contact.bytes().all(|byte| byte.is_ascii_graphic());
        if !contact.is_empty() && !is_contact {
            problems.add("http.security_contact", contact, "mailto:, https:// or tel: and an address");
        }
        let database = self.database.url.expose();
        if !["", "sqlite:", "postgres://", "postgresql://"].iter().any(|p| match p.is_empty() {
            true => database.is_empty(),
            false => database.starts_with(p),
        }) {
            problems.add("database.url", "another scheme", "sqlite:///path or postgres://user:password@host/name");
        }
        self.billing.validate(&mut problems);
        self.images.validate(&mut problems);
        self.retention.validate(&mut problems);
        self.samples.validate(&mut problems);
        self.audit.validate(&mut problems);
        let checked = cluster::Checked {
            role: self.role,
            cluster: &self.cluster,
            renderer: &self.renderer,
            is_postgres: database.starts_with("postgres"),
            has_key_file: !self.secrets.key_file.as_os_str().is_empty(),
            has_public_url: !url.is_empty(),
            has_images_url: self.images.location().is_some(),
        };
        checked.validate(&mut problems);
        self.bus.validate(self.cluster.enabled, &mut problems);
        self.abuse.validate(&mut problems);
        problems.into_result()
    }

    /// The public origin, without a trailing slash.
    pub fn public_url(&self, listening: SocketAddr) -> String {
        match self.http.public_url.is_empty() {
            true => format!("http://{listening}"),
            false => self.http.public_url.trim_end_matches('/').to_owned(),
        }
    }

    /// OAuth settings, derived from the public URL by default.
    pub fn oauth(&self, public_url: &str) -> grabd_engine::oauth::Settings {
        let or_default = |set: &str, default: String| match set.trim_end_matches('/') {
            "" => default,
            set => set.to_owned(),
        };
        grabd_engine::oauth::Settings {
            issuer: or_default(&self.oauth.auth_url, public_url.to_owned()),
            origin: public_url.to_owned(),
            mcp_url: or_default(&self.oauth.mcp_url, format!("{public_url}/mcp")),
            base_url: format!("{public_url}/v1"),
            web_base_url: format!("{public_url}/v1"),
            refresh_reuse_grace_s: self.oauth.refresh_reuse_grace_s,
            registrations_per_hour: self.oauth.registrations_per_hour,
            unused_clients: self.oauth.unused_clients,
        }
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

    /// Whether people whom the operator does not know can use the service: they can sign up or buy credits.
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

impl OAuth {
    fn validate(&self, problems: &mut Problems) {
        let Self { auth_url, mcp_url, refresh_reuse_grace_s: grace, registrations_per_hour: _, unused_clients: _ } =
            self;
        let is_issuer = is_origin(auth_url) && is_secure(auth_url);
        if !auth_url.is_empty() && !is_issuer {
            let allowed = "an https origin such as https://auth.example.com, without a path; http only on this machine";
            problems.add("oauth.auth_url", auth_url, allowed);
        }
        if !mcp_url.is_empty() && !is_secure(mcp_url) {
            let allowed =
                "an https address such as https://mcp.example.com/mcp, without a query; http only on this machine";
            problems.add("oauth.mcp_url", mcp_url, allowed);
        }
        if *grace > MAX_REUSE_GRACE_S {
            problems.add("oauth.refresh_reuse_grace_s", &grace.to_string(), &format!("at most {MAX_REUSE_GRACE_S}"));
        }
    }
}

impl Mail {
    /// The certificates are validated when they are used.
    fn validate(&self, problems: &mut Problems) {
        let Self { smtp_url, from, ca_file: _ } = self;
        if smtp_url.expose().is_empty() {
            return;
        }
        let server = Server { url: smtp_url.expose(), from, extra_roots: b"", own_host: "localhost" };
        match Smtp::new(server) {
            Ok(_) => {}
            Err(error @ mail::Error::From) => problems.add("mail.from", from, &error.to_string()),
            // It may contain a password.
            Err(error) => problems.add("mail.smtp_url", "another address", &error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
