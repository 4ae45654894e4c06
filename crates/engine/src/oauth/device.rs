//! The device authorization grant (RFC 8628): a program without a browser shows a code, a user types it on another device and
//! allows the program, which polls for its tokens.
//!
//! What the user allows is a grant with an authorization code, as in every other case. Nobody is told that code: its hash
//! follows from the device code's, and its PKCE verifier is the device code, so that only the program can exchange it.

use grabd_domain::credentials::DeviceCode;
use grabd_domain::oauth::{Challenge, ClientId, DEVICE_LIFE, OauthScopes, POLL_INTERVAL, Resources, UserCode};
use grabd_store::oauth::{DeviceOutcome, DevicePoll, Exchange, NewDeviceRequest, NewTokenPair, TokenOutcome};
use serde::Serialize;

use super::authorize::{AuthorizationRequest, Device, StoredRequest};
use super::client_auth::authenticate;
use super::clients::{self, ClientError};
use super::device_code::{code_hash, page};
use super::endpoint_error::EndpointError;
use super::form::{Fields, Form};
use crate::digest;
use crate::error::Error;
use crate::random;
use crate::service::Core;

/// Attempts to find a user code that no other open request has.
const CODE_ATTEMPTS: usize = 5;

/// A device authorization response (RFC 8628 section 3.2).
#[derive(Clone, Debug, Serialize)]
pub struct DeviceAuthorization {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: String,
    expires_in: u64,
    interval: u64,
}

/// Handles a request to the device authorization endpoint. `authorization` is the value of the `Authorization` header.
///
/// # Errors
/// The error response.
#[tracing::instrument(name = "oauth.authorize_device", skip_all)]
pub async fn authorize_device(
    core: &Core,
    form: &Fields,
    authorization: Option<&str>,
) -> Result<DeviceAuthorization, EndpointError> {
    let form = Form(form);
    let client = clients::find(core, authenticate(core, form, authorization).await?).await.map_err(client_error)?;
    let scopes = OauthScopes::requested(form.one("scope")?)?;
    let resources = Resources::parse(form.all("resource"), &core.oauth.settings.resources())
        .map_err(|error| EndpointError::bad("invalid_target", error.to_string()))?;
    // It is not redirected to. A grant has one.
    let redirect = client.redirect_uris.first().cloned();
    let redirect = redirect.ok_or_else(|| EndpointError::invalid_request("The client has no `redirect_uris`."))?;
    let code = DeviceCode::new(&random::secret_text()).expect("32 bytes are 43 base64url characters");
    let hash = digest::of(code.expose());
    let challenge = Challenge::parse(&digest::base64url_of(code.expose()), Some("S256")).expect("a SHA-256");
    let now = core.clock.now();
    let mut request = AuthorizationRequest {
        client: client.id,
        client_name: client.name,
        client_host: client.host,
        is_loopback: false,
        redirect,
        device: None,
        state: None,
        challenge,
        scopes,
        resources,
    };
    for _ in 0..CODE_ATTEMPTS {
        let user_code = UserCode::new(random::numbers());
        request.device = Some(Device { user_code: user_code.clone(), hash });
        let new = NewDeviceRequest {
            hash,
            user_code: user_code.clone(),
            request: StoredRequest::of(&request).to_text(),
            expires_at: now + DEVICE_LIFE,
            now,
        };
        match core.store.oauth().create_device_request(new).await? {
            DeviceOutcome::CodeTaken => {}
            DeviceOutcome::TooMany => break,
            DeviceOutcome::Created => {
                let page = page(core);
                return Ok(DeviceAuthorization {
                    device_code: code.expose().to_owned(),
                    user_code: user_code.to_string(),
                    verification_uri_complete: format!("{page}?user_code={user_code}"),
                    verification_uri: page,
                    expires_in: DEVICE_LIFE.as_secs(),
                    interval: POLL_INTERVAL.as_secs(),
                });
            }
        }
    }
    Err(EndpointError::unavailable("Too many programs wait for an answer; try again in some minutes."))
}

fn client_error(error: ClientError) -> EndpointError {
    match error {
        ClientError::NotRegistered => EndpointError::invalid_client("The client is unknown, or its secret is wrong."),
        ClientError::Document(why) => EndpointError::invalid_client(format!("The client's metadata document: {why}.")),
        ClientError::Internal(error) => error.into(),
    }
}

/// The request of the program that shows this code. `None` if no program shows it, or the request is answered.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "oauth.find_device", skip_all)]
pub async fn find_device(core: &Core, code: &UserCode) -> Result<Option<AuthorizationRequest>, Error> {
    let found = core.store.oauth().find_device_request(code, core.clock.now()).await?;
    found.map(|found| StoredRequest::read(&found.request)).transpose()
}

/// The tokens of a program that polls.
///
/// # Errors
/// The error response, which says whether to ask again.
pub(super) async fn exchange(
    core: &Core,
    form: Form<'_>,
    client: ClientId,
    pair: NewTokenPair,
) -> Result<TokenOutcome, EndpointError> {
    let code = form.one("device_code")?;
    let code = code.ok_or_else(|| EndpointError::invalid_request("`device_code` is missing."))?;
    let unknown = || EndpointError::invalid_grant("The device code is unknown, used, or not for this client.");
    let code = DeviceCode::parse(code).ok_or_else(unknown)?;
    let (hash, now) = (digest::of(code.expose()), core.clock.now());
    let request = match core.store.oauth().poll_device_request(hash, now).await? {
        DevicePoll::Unknown => return Err(unknown()),
        DevicePoll::Expired => {
            return Err(EndpointError::bad("expired_token", "Nobody has allowed the program in time."));
        }
        DevicePoll::Denied => return Err(EndpointError::bad("access_denied", "The user did not allow it.")),
        DevicePoll::Pending => {
            return Err(EndpointError::bad("authorization_pending", "The user has not answered yet."));
        }
        DevicePoll::SlowDown => {
            let seconds = POLL_INTERVAL.as_secs();
            return Err(EndpointError::bad(
                "slow_down",
                format!("Ask once in {seconds} seconds, and now 5 seconds later."),
            ));
        }
        DevicePoll::Allowed(request) => StoredRequest::read(&request)?,
    };
    if request.client != client {
        return Err(unknown());
    }
    let exchange = Exchange {
        code: code_hash(&hash),
        client,
        redirect: None,
        challenge: request.challenge,
        resources: request.resources,
        pair,
        now,
    };
    Ok(core.store.oauth().exchange(exchange).await?)
}
