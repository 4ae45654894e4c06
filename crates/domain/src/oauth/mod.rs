//! OAuth 2.1 rules. A user authorizes an app for one team and one environment. The app then has the access of an API key
//! of that team and environment whose scopes follow from [`OauthScopes`].
//!
//! Each rule has its own file: [`RedirectUri`], [`Challenge`], [`Resources`], [`OauthScopes`], client metadata, and
//! reuse of refresh tokens.

mod client;
mod device;
mod pkce;
mod redirect;
mod refresh;
mod resource;

use std::time::Duration;

pub use crate::credentials::{OauthScope, OauthScopes, ScopeError};
pub use client::{
    AuthMethod, ClientId, ClientMetadata, DOCUMENT_BYTES, DOCUMENT_LIFE, DOCUMENT_TIMEOUT, DocumentUrl, MetadataError,
    RawMetadata,
};
pub use device::{DEVICE_LIFE, DEVICE_REQUESTS, POLL_INTERVAL, POLL_TOLERANCE, UserCode};
pub use pkce::{Challenge, Verifier};
pub use redirect::{RedirectError, RedirectUri};
pub use refresh::{MAX_REFRESH_RETRIES, PreviousUse, RefreshUse, classify_refresh};
pub use resource::{ResourceError, Resources};

/// Lifetime of an authorization code. Apps exchange codes at once, so a leaked code soon expires.
pub const CODE_LIFE: Duration = Duration::from_secs(60);
/// Lifetime of a consent page.
pub const CONSENT_LIFE: Duration = Duration::from_secs(10 * 60);
/// Lifetime of an access token.
pub const ACCESS_LIFE: Duration = Duration::from_secs(60 * 60);
/// Lifetime of a refresh token. Without a refresh in this time, the app needs new consent.
pub const REFRESH_LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Maximum lifetime of a grant. After it, the app needs new consent.
pub const GRANT_LIFE: Duration = Duration::from_secs(180 * 24 * 60 * 60);
/// Grants per user. A new one replaces the one that was used the longest time ago.
pub const GRANTS: u64 = 100;
/// Used refresh tokens that are kept per grant, to detect reuse: more than an app uses that refreshes every hour until
/// they expire.
pub const USED_REFRESH_TOKENS: u64 = 1000;
/// Access tokens of a grant that are valid at the same time. Those issued before end.
pub const ACCESS_TOKENS: u64 = 100;
/// How long a registered client without grants is kept. An app registers shortly before a user authorizes it.
pub const UNUSED_CLIENT_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a used code is kept, to detect reuse.
pub const USED_CODE_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum total size of the fields of an authorization request: as much as fits in a request head.
pub const REQUEST_BYTES: usize = 16 << 10;
