//! Security schemes: API keys, and access tokens of apps.

use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, AuthorizationCode, Flow, HttpAuthScheme, HttpBuilder, OAuth2, Scopes, SecurityScheme,
};

/// Name of the security scheme of API keys.
pub(super) const BEARER: &str = "bearer";
/// Name of the security scheme of access tokens.
pub(super) const OAUTH: &str = "oauth";
/// Name of the security scheme of signed links.
pub(in super::super) const SIGNATURE: &str = "signature";
/// The scope of access tokens that every app has.
pub(super) const GRABS: &str = "grabs";
/// The scope of access tokens for everything else that an app may do.
pub(super) const MANAGE: &str = "manage";

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
    let scopes = Scopes::from_iter([
        (
            GRABS,
            "Capture pages, also by a schedule, list and read captures, and read the credit balance, for one team.",
        ),
        (MANAGE, "Create webhooks and proxies, which end with the app's access, and delete images."),
    ]);
    let authorize_url = format!("{auth_url}/oauth/authorize");
    let flow = AuthorizationCode::with_refresh_url(authorize_url, token_url.clone(), scopes, token_url);
    SecurityScheme::OAuth2(OAuth2::with_description(
        [Flow::AuthorizationCode(flow)],
        "`Authorization: Bearer <access token>`. OAuth 2.1 with PKCE; clients may register themselves.",
    ))
}

/// The signature of a link as a credential.
pub(super) fn signature() -> SecurityScheme {
    let about = "The last member of the query: the HMAC-SHA256 of the query before `&sig=`, as it is sent, with the \
                 `link_secret` of an API key, in lower-case hexadecimal digits.";
    SecurityScheme::ApiKey(ApiKey::Query(ApiKeyValue::with_description("sig", about)))
}
