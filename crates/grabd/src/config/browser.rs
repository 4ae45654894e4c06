//! Section `browser`.

use std::path::PathBuf;

use grabd_browser::{FrameMode, NetworkJail};
use grabd_domain::identity::{AgentForm, AgentUrl};
use serde::Deserialize;

use super::Problems;

/// The most characters that are appended to the User-Agent.
const MAX_USER_AGENT: usize = 200;

/// How the service names itself to sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestIdentity {
    /// Not at all.
    None,
    /// By signatures of requests for documents.
    Signed,
    /// The same, as verifiers of the former draft expect it.
    SignedText,
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
    pub identity: RequestIdentity,
    pub identity_url: String,
    pub filter_lists: PathBuf,
}

impl Browser {
    /// The origin under which the keys of signatures are published. `None` if requests are not signed.
    pub(super) fn agent(&self, public_url: &str) -> Option<AgentUrl> {
        let url = if self.identity_url.is_empty() { public_url } else { &self.identity_url };
        match self.identity {
            RequestIdentity::None => None,
            RequestIdentity::Signed => AgentUrl::parse(url),
            RequestIdentity::SignedText => AgentUrl::parse(url).map(|agent| agent.in_form(AgentForm::Text)),
        }
    }

    /// `public_url` is that of the configuration.
    pub(super) fn validate(&self, public_url: &str, problems: &mut Problems) {
        self.validate_identity(public_url, problems);
        problems.at_least_one("browser.settle_ms", self.settle_ms);
        problems.at_least_one("browser.recycle_grabs", self.recycle_grabs.into());
        problems.at_least_one("browser.recycle_seconds", self.recycle_seconds);
        problems.at_least_one("browser.recycle_megabytes", self.recycle_megabytes);
        if self.memory_limit_megabytes < 512 {
            let seen = self.memory_limit_megabytes.to_string();
            problems.add("browser.memory_limit_megabytes", &seen, "at least 512");
        }
        if self.process_limit < 200 {
            problems.add("browser.process_limit", &self.process_limit.to_string(), "at least 200");
        }
        let token = &self.user_agent;
        if token.len() > MAX_USER_AGENT || !token.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            let allowed = format!("at most {MAX_USER_AGENT} printable ASCII characters");
            problems.add("browser.user_agent", token, &allowed);
        }
        if self.slots > 64 {
            problems.add("browser.slots", &self.slots.to_string(), "at most 64");
        }
    }

    fn validate_identity(&self, public_url: &str, problems: &mut Problems) {
        let url = &self.identity_url;
        if !url.is_empty() && AgentUrl::parse(url).is_none() {
            problems.add("browser.identity_url", url, AgentUrl::ALLOWED);
        } else if self.identity != RequestIdentity::None && self.agent(public_url).is_none() {
            let allowed = format!("none, unless browser.identity_url or http.public_url is {}", AgentUrl::ALLOWED);
            let seen = if self.identity == RequestIdentity::Signed { "signed" } else { "signed_text" };
            problems.add("browser.identity", seen, &allowed);
        }
    }
}
