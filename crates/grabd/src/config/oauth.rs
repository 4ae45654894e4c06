//! Section `oauth`.

use grabd_engine::oauth::Settings;
use serde::Deserialize;

use super::Problems;
use super::origin::{is_origin, is_secure};

/// After a few minutes, no client is still waiting for a lost response.
const MAX_REUSE_GRACE_S: u64 = 300;

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

impl OAuth {
    pub(super) fn validate(&self, problems: &mut Problems) {
        let Self { auth_url, mcp_url, refresh_reuse_grace_s: grace, registrations_per_hour, unused_clients } = self;
        problems.at_least_one("oauth.registrations_per_hour", (*registrations_per_hour).into());
        problems.at_least_one("oauth.unused_clients", (*unused_clients).into());
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

    /// As the engine takes them, derived from the public URL by default.
    pub(super) fn settings(&self, public_url: &str) -> Settings {
        let or_default = |set: &str, default: String| match set.trim_end_matches('/') {
            "" => default,
            set => set.to_owned(),
        };
        Settings {
            issuer: or_default(&self.auth_url, public_url.to_owned()),
            origin: public_url.to_owned(),
            mcp_url: or_default(&self.mcp_url, format!("{public_url}/mcp")),
            base_url: format!("{public_url}/v1"),
            web_base_url: format!("{public_url}/v1"),
            refresh_reuse_grace_s: self.refresh_reuse_grace_s,
            registrations_per_hour: self.registrations_per_hour,
            unused_clients: self.unused_clients,
        }
    }
}
