//! Section `http`.

use std::net::SocketAddr;

use ipnet::IpNet;
use serde::Deserialize;

use super::origin::is_origin;
use super::{Problems, lists};

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

impl Http {
    pub(super) fn validate(&self, problems: &mut Problems) {
        problems.at_least_one("http.connections_per_address", self.connections_per_address as u64);
        problems.at_least_one("http.requests_per_address", self.requests_per_address as u64);
        let url = &self.public_url;
        if !url.is_empty() && !is_origin(url) {
            problems.add("http.public_url", url, "an http(s) origin such as https://grabs.example.com, without a path");
        }
        let contact = &self.security_contact;
        let is_contact = ["mailto:", "https://", "tel:"].iter().any(|scheme| contact.starts_with(scheme))
            && contact.bytes().all(|byte| byte.is_ascii_graphic());
        if !contact.is_empty() && !is_contact {
            problems.add("http.security_contact", contact, "mailto:, https:// or tel: and an address");
        }
    }
}
