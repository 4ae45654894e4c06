//! The OpenAPI 3.1 document of the REST API. `docs` renders it as HTML.
//!
//! Schemas are derived from the wire types; operations are written here, one function each. A test fails if the router
//! and this document have different paths.

mod account;
mod errors;
mod examples;
mod grabs;
mod headers;
mod links;
mod messages;
mod parts;
mod pricing;
mod request;
mod security;
mod webhooks;

use utoipa::openapi::path::PathItem;
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ComponentsBuilder, ContactBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Paths, PathsBuilder,
    ServerBuilder,
};

use super::webhooks as hooks;
pub(super) use errors::{ERROR_CODES, meaning};
use security::{BEARER, OAUTH, bearer, oauth};

/// Version of the API contract, not of the program.
const VERSION: &str = "1.0.0";
/// Prefix of all paths.
pub(super) const ROOT: &str = "/v1";

const ABOUT: &str = include_str!("about.md");

/// Groups of operations in the order of their documentation.
const TAGS: [(&str, &str); 3] = [
    ("Grabs", "A grab is one capture of a web page: its request, its state and its image."),
    ("Webhooks", "Signed messages to your URL when asynchronous live grabs have ended."),
    ("Account", "Balance, pricing, and this API reference."),
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

fn operations() -> impl Iterator<Item = (&'static str, PathItem)> {
    let grabs = grabs::operations().into_iter().chain(links::operations());
    grabs.chain(webhooks::operations()).chain(account::operations())
}

fn paths(operations: impl IntoIterator<Item = (&'static str, PathItem)>) -> Paths {
    operations.into_iter().fold(PathsBuilder::new(), |paths, (path, item)| paths.path(path, item)).build()
}

fn components(origin: &str, auth_url: &str) -> ComponentsBuilder {
    let components = ComponentsBuilder::new()
        .security_scheme(BEARER, bearer())
        .security_scheme(OAUTH, oauth(&format!("{origin}{ROOT}"), auth_url))
        .security_scheme(links::SIGNATURE, links::signature())
        .schema("CreateGrabRequest", request::create_grab())
        .schema("CreateBatchRequest", request::create_batch())
        .schema("Batch", grabs::batch())
        .schema_from::<grabd_api::Grab<'_>>()
        .schema_from::<grabd_api::GrabList<'_>>()
        .schema_from::<grabd_api::Usage<'_>>()
        .schema("CreateWebhookRequest", request::create_webhook())
        .schema("UpdateWebhookRequest", request::update_webhook())
        .schema_from::<hooks::Webhook<'_>>()
        .schema_from::<hooks::WebhookList<'_>>()
        .schema_from::<hooks::Delivery<'_>>()
        .schema_from::<hooks::DeliveryList<'_>>()
        .schema("Pricing", pricing::packet())
        .schema("Error", errors::schema());
    let components =
        messages::schemas().into_iter().fold(components, |components, (name, schema)| components.schema(name, schema));
    headers::headers().into_iter().fold(components, |components, (name, header)| components.header(name, header))
}

#[cfg(test)]
mod tests;
