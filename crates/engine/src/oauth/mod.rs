//! OAuth 2.1: an app requests access, a user grants it for one team and environment, and the app gets tokens.
//!
//! `authorize` handles authorization requests and consent, `token` exchanges codes and refresh tokens, `device`
//! serves programs without a browser, `register` and
//! `documents` are the two sources of client metadata, `clients` looks clients up, `apps` lists and ends grants. The
//! rules for request parameters are in [`grabd_domain::oauth`]; each change of codes and tokens is one transaction in
//! the store.

mod apps;
mod authorize;
mod client_auth;
mod clients;
mod device;
mod device_code;
mod documents;
mod endpoint_error;
mod form;
mod metadata;
mod register;
mod revoke;
mod token;

pub use apps::{ConnectedApp, disconnect, list_apps};
pub use authorize::{
    AuthorizationError, AuthorizationRequest, Device, allow, check_request, create_consent_request, deny,
    take_consent_request,
};
pub use device::{DeviceAuthorization, authorize_device, find_device};
pub use device_code::DEVICE_PATH;
use documents::Documents;
pub use endpoint_error::EndpointError;
pub use form::Fields;
pub use grabd_domain::credentials::ConsentToken;
pub use metadata::{Resource, metadata, resource_metadata};
pub use register::register;
pub use revoke::revoke;
pub use token::{Tokens, token};

/// The state of the use-cases of OAuth.
pub(crate) struct OAuth {
    pub(crate) settings: Settings,
    pub(crate) documents: Documents,
}

impl OAuth {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { settings, documents: Documents::default() }
    }
}

/// OAuth configuration. URLs have no trailing slash.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Issuer: the origin of the consent page.
    pub issuer: String,
    /// Origin of the service.
    pub origin: String,
    /// URL of the MCP endpoint.
    pub mcp_url: String,
    /// Base URL of the REST API.
    pub base_url: String,
    /// Base URL of the token, registration and revocation endpoints.
    pub web_base_url: String,
    /// Seconds during which the reuse of a refresh token is tolerated.
    pub refresh_reuse_grace_s: u64,
    /// Client registrations per hour of one address, or of one /48 in IPv6. At least 1.
    pub registrations_per_hour: u32,
    /// Registered clients that may exist without a grant. At least 1.
    pub unused_clients: u32,
}

impl Settings {
    /// The accepted identifiers of the resource server.
    fn resources(&self) -> [&str; 4] {
        [&self.mcp_url, &self.base_url, &self.web_base_url, &self.origin]
    }
}
