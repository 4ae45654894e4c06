//! The state that all handlers share, and the settings that it is made of.

use std::sync::LazyLock;

use axum::Router;
use grabd_limiters::{AddressLimiter, EndSiteQuota};
use grabd_memory::MemoryBudget;
use ipnet::IpNet;
use utoipa::openapi::OpenApi;

use super::challenges::Challenges;
use super::docs::cached_document::CachedDocument;
use super::large_body::LargeBodies;
use super::pricing_packets::Packets;
use crate::reading::Reader;
use crate::transport::Transport;

/// Settings of the REST API.
#[derive(Clone, Debug)]
pub struct Options {
    /// Origin at which callers reach `/v1`, such as `https://grabd.example`. Pagination links begin with it.
    pub public_url: String,
    /// Origin of the page on which people authorize apps. It is named in the OpenAPI document.
    pub auth_url: String,
    /// Requests per minute and address without a recognised team. At least 1.
    pub requests_per_minute: u32,
    /// Asynchronous grabs a team may have open. Only reported here; the core enforces the limit.
    pub async_queue_limit: u32,
    /// Networks of proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Router that serves images and files at the paths of their public URLs.
    pub images: Router,
    /// The memory for images and files, shared with the rest of the process.
    pub memory: MemoryBudget,
}

/// Links that an address may open in place of one other request: a page may show many.
const LINKS_PER_REQUEST: u32 = 10;

/// State shared by all handlers.
pub(super) struct Edge {
    pub(super) transport: Transport,
    pub(super) origin: String,
    pub(super) async_queue_limit: u32,
    pub(super) trusted_proxies: Vec<IpNet>,
    pub(super) addresses: AddressLimiter,
    /// Requests for links.
    pub(super) link_addresses: AddressLimiter,
    pub(super) large_bodies: LargeBodies,
    /// The OpenAPI document, written at the first request.
    pub(super) document: LazyLock<CachedDocument, Box<dyn FnOnce() -> CachedDocument + Send>>,
    pub(super) challenges: Challenges,
    pub(super) pricing: Packets,
    pub(super) reader: Reader,
}

impl Edge {
    pub(super) fn new(transport: Transport, options: Options, describe: fn(&str, &str) -> OpenApi) -> Self {
        let Options { public_url, auth_url, requests_per_minute, async_queue_limit, trusted_proxies, images, memory } =
            options;
        let origin = public_url.trim_end_matches('/').to_owned();
        let described = origin.clone();
        Self {
            large_bodies: LargeBodies::new(transport.clone()),
            transport,
            document: LazyLock::new(Box::new(move || CachedDocument::new(&describe(&described, &auth_url)))),
            challenges: Challenges::new(&origin),
            reader: Reader::new(images, memory, &origin),
            origin,
            async_queue_limit,
            trusted_proxies,
            addresses: AddressLimiter::per_minute(requests_per_minute, EndSiteQuota::USUAL),
            link_addresses: AddressLimiter::per_minute(
                requests_per_minute.saturating_mul(LINKS_PER_REQUEST),
                EndSiteQuota::USUAL,
            ),
            pricing: Packets::default(),
        }
    }
}
