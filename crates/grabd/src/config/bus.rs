//! Section `bus`.

use grabd_engine::bus::BusSettings;
use serde::Deserialize;

use super::{Problems, Secret};

/// Section `bus`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Bus {
    pub url: Secret,
}

/// The most servers of NATS.
const MAX_SERVERS: usize = 16;

impl Bus {
    /// How the processes of a cluster exchange hints.
    pub fn settings(&self) -> BusSettings {
        match self.url.expose() {
            "" => BusSettings::Database,
            url => BusSettings::Nats(url.to_owned()),
        }
    }

    pub(super) fn validate(&self, is_cluster: bool, problems: &mut Problems) {
        let url = self.url.expose();
        if url.is_empty() {
            return;
        }
        // It may contain a password, so it is not shown.
        if !is_cluster {
            problems.add("bus.url", "a URL", "empty unless cluster.enabled is true");
        }
        let servers: Vec<&str> = url.split(',').map(str::trim).collect();
        if servers.len() > MAX_SERVERS {
            let seen = format!("{} servers", servers.len());
            problems.add("bus.url", &seen, &format!("at most {MAX_SERVERS} servers"));
        }
        if !servers.into_iter().all(is_server) {
            let allowed = "empty, or servers such as nats://10.0.0.5:4222 or tls://user:password@nats.internal:4222";
            problems.add("bus.url", "another address", allowed);
        }
    }
}

fn is_server(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "nats" | "tls")
            && url.has_host()
            && matches!(url.path(), "" | "/")
            && url.query().is_none()
    })
}
