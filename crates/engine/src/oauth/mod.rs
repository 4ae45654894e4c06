//! OAuth 2.1: an app asks, a person allows it for one team and environment, the app gets tokens.
//!
//! `authorize` is the way of a request to the consent page and back, `token` the exchange of codes and refresh tokens,
//! `register` and `documents` how apps become known, `clients` who they are, `apps` what a person sees of them later.
//! What a request may say is in [`grabd_domain::oauth`]; what happens to codes and tokens, in one transaction each in the
//! store.

mod apps;
mod authorize;
mod clients;
mod documents;
mod form;
mod metadata;
mod register;
mod revoke;
mod token;

pub use apps::{ConnectedApp, disconnect, list_apps};
pub use authorize::{Asked, Refusal, allow, ask, check_request, deny, redeem};
pub(crate) use documents::Documents;
pub use form::Fields;
pub use grabd_domain::credentials::Ticket;
pub use metadata::{Resource, metadata, resource_metadata};
pub use register::{RegistrationError, register};
pub use revoke::revoke;
pub use token::{TokenError, Tokens, token};

/// What an operator sets about OAuth. No address ends in a slash.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who issues: the origin of the consent page.
    pub issuer: String,
    /// Where MCP is served.
    pub mcp_url: String,
    /// Where REST is served.
    pub base_url: String,
    /// Where the token endpoint and its neighbours are.
    pub web_base_url: String,
    /// For how long a second use of a refresh token is forgiven.
    pub refresh_reuse_grace_s: u64,
}

impl Settings {
    /// The names of the one resource server.
    fn resources(&self) -> [&str; 3] {
        [&self.mcp_url, &self.base_url, &self.web_base_url]
    }
}
