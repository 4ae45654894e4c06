//! Security schemes: API keys, and access tokens of apps.

use utoipa::openapi::security::{AuthorizationCode, Flow, HttpAuthScheme, HttpBuilder, OAuth2, Scopes, SecurityScheme};

/// Name of the security scheme of API keys.
pub(super) const BEARER: &str = "bearer";
/// Name of the security scheme of access tokens.
pub(super) const OAUTH: &str = "oauth";
/// The scope of access tokens.
pub(super) const OAUTH_SCOPE: &str = "grabs";

/// API keys.
pub(super) fn bearer() -> SecurityScheme {
    let credential = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("API key").description(Some(
        "`Authorization: Bearer <API key>`. `sk_live_…` renders and spends credits, `sk_test_…` does not.",
    ));
    SecurityScheme::Http(credential.build())
}

/// How apps get access tokens. `base_url` is that of the API.
pub(super) fn oauth(base_url: &str, auth_url: &str) -> SecurityScheme {
    let token_url = format!("{base_url}/oauth/token");
    let scopes = Scopes::from_iter([(OAUTH_SCOPE, "Capture pages and read captures for one team.")]);
    let authorize_url = format!("{auth_url}/oauth/authorize");
    let flow = AuthorizationCode::with_refresh_url(authorize_url, token_url.clone(), scopes, token_url);
    SecurityScheme::OAuth2(OAuth2::with_description(
        [Flow::AuthorizationCode(flow)],
        "`Authorization: Bearer <access token>`. OAuth 2.1 with PKCE; clients may register themselves.",
    ))
}
