//! OAuth 2.1: which requests an app may make, and what it gets. A person lets an app act for one of their teams in one
//! environment; the app then has what a key of that team and environment has.
//!
//! One file for each rule: [`RedirectUri`], [`Challenge`], [`Resources`], [`check_scope`], the metadata of clients and
//! what a second use of a refresh token means.

mod client;
mod pkce;
mod redirect;
mod refresh;
mod resource;
mod scope;

use std::time::Duration;

pub use client::{
    AuthMethod, ClientId, ClientMetadata, DOCUMENT_BYTES, DOCUMENT_LIFE, DOCUMENT_LIMIT, DocumentUrl, MetadataError,
    RawMetadata,
};
pub use pkce::{Challenge, Verifier};
pub use redirect::{RedirectError, RedirectUri};
pub use refresh::{MAX_SIBLINGS, Presented, Retired, judge};
pub use resource::{ResourceError, Resources};
pub use scope::{SCOPE, ScopeError, check_scope};

/// From consent to exchange: an app does it at once, so a code that was left somewhere is soon worth nothing.
pub const CODE_LIFE: Duration = Duration::from_secs(60);
/// From the consent page to its answer.
pub const TICKET_LIFE: Duration = Duration::from_secs(10 * 60);
/// How long an access token opens anything.
pub const ACCESS_LIFE: Duration = Duration::from_secs(60 * 60);
/// How long an app may stay away before a person has to allow it anew.
pub const REFRESH_LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// When a person has to allow an app anew at the latest.
pub const GRANT_LIFE: Duration = Duration::from_secs(180 * 24 * 60 * 60);
/// How long a registered client is kept that nobody lets do anything.
pub const UNUSED_CLIENT_LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long a code that was used is kept, so that a second use of it is known for what it is.
pub const USED_CODE_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// Most bytes of all fields of an authorization request together: what a request's head can hold.
pub const REQUEST_BYTES: usize = 16 << 10;
