//! The OpenAPI 3.1 document of the REST API. `docs` renders pages of it.
//!
//! Schemas are derived from `grabd_api`. The operation of each endpoint is beside its handler; here is what they share. A test
//! fails if the router and this document have different paths.

mod description;
pub(super) mod errors;
pub(super) mod examples;
mod headers;
mod messages;
pub(super) mod parts;
pub(super) mod pricing;
mod request;
pub(super) mod security;
pub(super) mod tags;

use utoipa::openapi::path::{HttpMethod, PathItem};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ComponentsBuilder, ContactBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Paths, PathsBuilder,
    ServerBuilder,
};

use super::{
    batch, create, delete, events, fetch, links, list, monitors, pricing as prices, proxies, read, sites, usage,
    webhooks,
};
use parts::path;
use security::{BEARER, OAUTH, SIGNATURE, bearer, oauth, signature};

/// Version of the API contract, not of the program.
const VERSION: &str = "1.0.0";
/// Prefix of all paths.
pub(super) const ROOT: &str = "/v1";

const ABOUT: &str = include_str!("about.md");

/// Groups of operations in the order of their documentation.
const TAGS: [(&str, &str); 6] = [
    (tags::GRABS, "A grab is one capture of a web page: its request, its state and its image."),
    (tags::MONITORS, "A monitor captures a page by a schedule, compares it with a baseline, and reports changes."),
    (tags::SITES, "A site job captures many pages of one site, found from its links or its sitemap."),
    (
        tags::WEBHOOKS,
        "Signed messages to your URL: asynchronous live grabs have ended, pages have changed, credits are low.",
    ),
    (tags::PROXIES, "Servers of yours, through which pages can be loaded."),
    (tags::ACCOUNT, "Balance, pricing, and this API reference."),
];

/// The document of the service at `origin`. Apps are authorized at `auth_url`.
pub(super) fn document(origin: &str, auth_url: &str) -> OpenApi {
    let info = InfoBuilder::new()
        .title("grabd")
        .version(VERSION)
        .description(Some(ABOUT.trim()))
        .contact(Some(ContactBuilder::new().name(Some("The operator of this service")).url(Some(origin)).build()))
        .license(Some(LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build()));
    let server = ServerBuilder::new().url(format!("{origin}{ROOT}")).description(Some("This service"));
    OpenApiBuilder::new()
        .info(info)
        .servers(Some([server.build()]))
        .tags(Some(TAGS.map(|(name, about)| TagBuilder::new().name(name).description(Some(about)).build())))
        .paths(paths(operations()))
        .webhooks(Some(paths(messages::operations())))
        .components(Some(components(origin, auth_url).build()))
        .build()
}

/// All paths, in the order of the document.
fn operations() -> Vec<(&'static str, PathItem)> {
    use HttpMethod::{Delete, Get, Patch, Post};
    vec![
        path("/grabs", [(Post, create::operation()), (Get, list::operation())]),
        path("/grabs/batch", [(Post, batch::operation())]),
        path("/grabs/{id}", [(Get, fetch::operation()), (Delete, delete::operation())]),
        path("/grabs/{id}/read", [(Get, read::operation())]),
        path("/grabs/{id}/events", [(Get, events::operation())]),
        path("/shot", [(Get, links::operation())]),
        path("/monitors", [(Post, monitors::create_operation()), (Get, monitors::list_operation())]),
        path("/monitors/batch", [(Post, monitors::create_batch_operation())]),
        path(
            "/monitors/{id}",
            [
                (Get, monitors::fetch_operation()),
                (Patch, monitors::update_operation()),
                (Delete, monitors::delete_operation()),
            ],
        ),
        path("/monitors/{id}/runs", [(Get, monitors::runs_operation())]),
        path("/monitors/{id}/history.zip", [(Get, monitors::history_operation())]),
        path(
            "/monitors/{id}/feed",
            [(Post, monitors::open_feed_operation()), (Delete, monitors::close_feed_operation())],
        ),
        path("/monitors/{id}/accept", [(Post, monitors::accept_operation())]),
        path("/sites", [(Post, sites::create_operation()), (Get, sites::list_operation())]),
        path("/sites/{id}", [(Get, sites::fetch_operation()), (Delete, sites::delete_operation())]),
        path("/sites/{id}/pages", [(Get, sites::pages_operation())]),
        path("/sites/{id}/cancel", [(Post, sites::cancel_operation())]),
        path("/webhooks", [(Post, webhooks::create_operation()), (Get, webhooks::list_operation())]),
        path(
            "/webhooks/{id}",
            [
                (Get, webhooks::fetch_operation()),
                (Patch, webhooks::update_operation()),
                (Delete, webhooks::delete_operation()),
            ],
        ),
        path("/webhooks/{id}/rotate_secret", [(Post, webhooks::rotate_secret_operation())]),
        path("/webhooks/{id}/test", [(Post, webhooks::test_operation())]),
        path("/webhooks/{id}/deliveries", [(Get, webhooks::deliveries_operation())]),
        path("/webhooks/{id}/deliveries/{delivery_id}/redeliver", [(Post, webhooks::redeliver_operation())]),
        path("/proxies", [(Post, proxies::create_operation()), (Get, proxies::list_operation())]),
        path(
            "/proxies/{id}",
            [
                (Get, proxies::fetch_operation()),
                (Patch, proxies::update_operation()),
                (Delete, proxies::delete_operation()),
            ],
        ),
        path("/usage", [(Get, usage::operation())]),
        path("/pricing", [(Get, prices::operation())]),
        path("/openapi.json", [(Get, description::operation())]),
    ]
}

fn paths(operations: impl IntoIterator<Item = (&'static str, PathItem)>) -> Paths {
    operations.into_iter().fold(PathsBuilder::new(), |paths, (path, item)| paths.path(path, item)).build()
}

fn components(origin: &str, auth_url: &str) -> ComponentsBuilder {
    let components = ComponentsBuilder::new()
        .security_scheme(BEARER, bearer())
        .security_scheme(OAUTH, oauth(&format!("{origin}{ROOT}"), auth_url))
        .security_scheme(SIGNATURE, signature())
        .schema("CreateGrabRequest", request::create_grab())
        .schema("CreateBatchRequest", request::create_batch())
        .schema("Batch", batch::schema())
        .schema_from::<grabd_api::Grab<'_>>()
        .schema_from::<grabd_api::GrabList<'_>>()
        .schema_from::<grabd_api::GrabText<'_>>()
        .schema_from::<grabd_api::Usage<'_>>()
        .schema("CreateMonitorRequest", monitors::create_monitor())
        .schema("CreateMonitorBatchRequest", monitors::create_monitor_batch())
        .schema("UpdateMonitorRequest", monitors::update_monitor())
        .schema("AcceptBaselineRequest", monitors::accept_baseline())
        .schema_from::<grabd_api::Monitor<'_>>()
        .schema_from::<grabd_api::MonitorList<'_>>()
        .schema_from::<grabd_api::MonitorBatch<'_>>()
        .schema_from::<grabd_api::MonitorRun<'_>>()
        .schema_from::<grabd_api::MonitorRunList<'_>>()
        .schema("CreateSiteRequest", sites::create_site())
        .schema_from::<grabd_api::Site<'_>>()
        .schema_from::<grabd_api::SiteList<'_>>()
        .schema_from::<grabd_api::SitePage<'_>>()
        .schema_from::<grabd_api::SitePageList<'_>>()
        .schema_from::<grabd_api::MonitorFeed<'_>>()
        .schema("CreateWebhookRequest", request::create_webhook())
        .schema("UpdateWebhookRequest", request::update_webhook())
        .schema_from::<webhooks::Webhook<'_>>()
        .schema_from::<webhooks::WebhookList<'_>>()
        .schema_from::<webhooks::Delivery<'_>>()
        .schema_from::<webhooks::DeliveryList<'_>>()
        .schema("CreateProxyRequest", proxies::create_proxy())
        .schema("UpdateProxyRequest", proxies::update_proxy())
        .schema_from::<grabd_api::Proxy<'_>>()
        .schema_from::<grabd_api::ProxyList<'_>>()
        .schema("Pricing", pricing::packet())
        .schema("Error", errors::schema());
    let components =
        messages::schemas().into_iter().fold(components, |components, (name, schema)| components.schema(name, schema));
    headers::headers().into_iter().fold(components, |components, (name, header)| components.header(name, header))
}

#[cfg(test)]
mod tests;
