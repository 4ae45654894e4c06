//! The description of this face for programs (OpenAPI 3.1) and, through `docs`, for people.
//!
//! Schemas are derived from the wire types that answer; the operations stand here, one function each. A path of the router
//! that has no operation here, or the other way round, fails a test.

mod account;
mod errors;
mod grabs;
mod parts;
mod pricing;
mod request;
mod webhooks;

use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ComponentsBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Paths, PathsBuilder, ServerBuilder,
};

use super::webhooks as hooks;
use super::wire;
pub(super) use errors::{TABLE, meaning};

/// Version of the description, which is that of the contract and not of the program.
const VERSION: &str = "1.0.0";
/// Where all paths begin.
pub(super) const ROOT: &str = "/v1";
/// The name under which operations refer to the credential.
const BEARER: &str = "bearer";

const ABOUT: &str = include_str!("about.md");

/// Groups of operations, in the order in which people should meet them.
const TAGS: [(&str, &str); 3] = [
    ("Grabs", "A grab is one capture of a web page: what was asked for, how it went, and where the image is."),
    ("Webhooks", "Signed messages to an address of yours when asynchronous live grabs have ended."),
    ("Account", "What is left, what it costs, and this description."),
];

/// Everything below `/v1` of the service at `origin`.
pub(super) fn document(origin: &str) -> OpenApi {
    let info = InfoBuilder::new()
        .title("grabd")
        .version(VERSION)
        .description(Some(ABOUT.trim()))
        .license(Some(LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build()));
    let server = ServerBuilder::new().url(format!("{origin}{ROOT}")).description(Some("This service"));
    OpenApiBuilder::new()
        .info(info)
        .servers(Some([server.build()]))
        .tags(Some(TAGS.map(|(name, about)| TagBuilder::new().name(name).description(Some(about)).build())))
        .paths(paths())
        .components(Some(components().build()))
        .build()
}

fn paths() -> Paths {
    let operations = grabs::operations().into_iter().chain(webhooks::operations()).chain(account::operations());
    let items = operations.fold(PathsBuilder::new(), |paths, (path, item)| paths.path(path, item));
    items.build()
}

fn components() -> ComponentsBuilder {
    let credential = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("API key").description(Some(
        "`Authorization: Bearer <API key>`. `sk_live_…` renders and spends credits, `sk_test_…` does not.",
    ));
    let components = ComponentsBuilder::new()
        .security_scheme(BEARER, SecurityScheme::Http(credential.build()))
        .schema("CreateGrabRequest", request::create_grab())
        .schema_from::<wire::Grab<'_>>()
        .schema_from::<wire::GrabList<'_>>()
        .schema_from::<wire::Usage<'_>>()
        .schema("CreateWebhookRequest", request::create_webhook())
        .schema("UpdateWebhookRequest", request::update_webhook())
        .schema_from::<hooks::Webhook<'_>>()
        .schema_from::<hooks::WebhookList<'_>>()
        .schema_from::<hooks::Delivery<'_>>()
        .schema_from::<hooks::DeliveryList<'_>>()
        .schema("Pricing", pricing::packet())
        .schema("Error", errors::schema());
    parts::headers().into_iter().fold(components, |components, (name, header)| components.header(name, header))
}

#[cfg(test)]
mod tests;
