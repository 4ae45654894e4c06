//! Authorization requests: validation, the consent page, and the redirect back to the app.

use grabd_domain::credentials::{AuthorizationCode, ConsentToken, Environment};
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::oauth::{
    CONSENT_LIFE, Challenge, ClientId, OauthScope, OauthScopes, REQUEST_BYTES, RedirectUri, Resources, UserCode,
};
use grabd_store::oauth::{ConsentOutcome, NewConsent, NewConsentRequest};
use serde::{Deserialize, Serialize};

use super::clients::{self, Client, ClientError};
use super::device_code;
use super::form::{Fields, Form, RepeatedField};
use crate::accounts::is_verified;
use crate::digest;
use crate::error::{Error, internal_from};
use crate::random;
use crate::service::Core;

/// A valid authorization request, which may be shown to a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationRequest {
    /// The app.
    pub client: ClientId,
    /// Name chosen by the app; untrusted text.
    pub client_name: String,
    /// Host of its metadata document, if it has one.
    pub client_host: Option<String>,
    /// Redirect URI of the response.
    pub redirect: RedirectUri,
    /// Whether the redirect goes to a program on the user's machine. Other programs there could impersonate the app.
    pub is_loopback: bool,
    /// The program on another device that waits for the answer, instead of a redirect.
    pub device: Option<Device>,
    pub(super) state: Option<String>,
    pub(super) challenge: Challenge,
    pub(super) scopes: OauthScopes,
    pub(super) resources: Resources,
}

/// A program that waits for the answer of a user (RFC 8628).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The code that the program shows.
    pub user_code: UserCode,
    /// SHA-256 of the device code.
    pub(super) hash: [u8; 32],
}

/// Why a request is not shown on the consent page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorizationError {
    /// Shown to the user, without a redirect. One or two sentences.
    Page(String),
    /// Sent to the app: the `Location` of a 303 response.
    Redirect(String),
    /// An internal error.
    Internal(Error),
}

internal_from!(AuthorizationError);

/// Error code and description for the app (RFC 6749 section 4.1.2.1).
struct ErrorResponse(&'static str, String);

impl From<RepeatedField> for ErrorResponse {
    fn from(field: RepeatedField) -> Self {
        Self("invalid_request", field.description())
    }
}

impl AuthorizationRequest {
    /// The source that the consent page's `form-action` policy must allow; otherwise the browser blocks the redirect.
    pub fn redirect_origin_or_scheme(&self) -> String {
        self.redirect.origin_or_scheme()
    }

    /// Whether the app asks to manage webhooks and delete images, which the user may refuse.
    pub const fn asks_to_manage(&self) -> bool {
        self.scopes.includes(OauthScope::Manage)
    }

    /// The same request without that.
    #[must_use]
    pub fn without_manage(self) -> Self {
        Self { scopes: OauthScopes::GRABS, ..self }
    }
}

/// Validates a request. Errors are redirected to the app only when the client and its redirect URI are valid.
///
/// # Errors
/// See [`AuthorizationError`].
#[tracing::instrument(name = "oauth.check_request", skip_all)]
pub async fn check_request(core: &Core, fields: &Fields) -> Result<AuthorizationRequest, AuthorizationError> {
    let form = Form(fields);
    let page = |text: &str| AuthorizationError::Page(text.to_owned());
    if form.bytes() > REQUEST_BYTES {
        return Err(page("The app asked with a request that is too long."));
    }
    let id = match form.one("client_id") {
        Ok(Some(text)) => ClientId::parse(text).ok_or_else(|| page(UNKNOWN_CLIENT))?,
        Ok(None) => return Err(page("The app did not say which one it is: `client_id` is missing.")),
        Err(RepeatedField(_)) => return Err(page("The app named itself twice: `client_id` is repeated.")),
    };
    let client = clients::find(core, id).await.map_err(client_error)?;
    let redirect = redirect(form, &client).map_err(|text| page(&text))?;
    let validated = validate(core, form);
    let state = form.one("state").ok().flatten().map(str::to_owned);
    match validated {
        Ok((challenge, scopes, resources)) => Ok(AuthorizationRequest {
            client: client.id,
            client_name: client.name,
            client_host: client.host,
            is_loopback: redirect.is_loopback(),
            redirect,
            device: None,
            state,
            challenge,
            scopes,
            resources,
        }),
        Err(ErrorResponse(error, description)) => {
            let fields = [("error", error), ("error_description", &description)];
            Err(AuthorizationError::Redirect(location(core, &redirect, state.as_deref(), &fields)))
        }
    }
}

const UNKNOWN_CLIENT: &str = "The app is not known here. It may have registered long ago and never been used: remove \
                              it where you use it, and add it again.";

fn client_error(error: ClientError) -> AuthorizationError {
    match error {
        ClientError::NotRegistered => AuthorizationError::Page(UNKNOWN_CLIENT.to_owned()),
        ClientError::Document(why) => {
            let cause = std::error::Error::source(&why).map(ToString::to_string);
            tracing::info!(%why, cause, "client metadata document refused");
            let code = why.code().map_or_else(String::new, |code| format!(" ({code})"));
            AuthorizationError::Page(format!("What the app says of itself at its address cannot be used: {why}{code}."))
        }
        ClientError::Internal(error) => AuthorizationError::Internal(error),
    }
}

/// The redirect URI: the requested one, or the only registered one.
fn redirect(form: Form<'_>, client: &Client) -> Result<RedirectUri, String> {
    let unknown = || "The app wants the answer at an address that it has not registered.".to_owned();
    match (form.one("redirect_uri"), client.redirect_uris.as_slice()) {
        (Err(RepeatedField(_)), _) => Err("The app named two addresses: `redirect_uri` is repeated.".to_owned()),
        (Ok(None), [single]) => Ok(single.clone()),
        (Ok(None), _) => Err("The app did not say where the answer goes: `redirect_uri` is missing.".to_owned()),
        (Ok(Some(text)), known) => {
            let requested = RedirectUri::parse(text).map_err(|_| unknown())?;
            known.iter().any(|known| known.matches(&requested)).then_some(requested).ok_or_else(unknown)
        }
    }
}

fn validate(core: &Core, form: Form<'_>) -> Result<(Challenge, OauthScopes, Resources), ErrorResponse> {
    let invalid = |text: &str| ErrorResponse("invalid_request", text.to_owned());
    form.one("state")?;
    match form.one("response_type")? {
        Some("code") => {}
        Some(_) => {
            return Err(ErrorResponse("unsupported_response_type", "`response_type` must be code.".to_owned()));
        }
        None => return Err(invalid("`response_type` is missing; it must be code.")),
    }
    if form.one("response_mode")?.is_some_and(|mode| mode != "query") {
        return Err(invalid("`response_mode` must be query."));
    }
    let method = form.one("code_challenge_method")?;
    let Some(challenge) = form.one("code_challenge")? else {
        return Err(invalid("PKCE is required: `code_challenge` is missing."));
    };
    let challenge = Challenge::parse(challenge, method).ok_or_else(|| {
        invalid("`code_challenge_method` must be S256, and `code_challenge` 43 base64url characters.")
    })?;
    let scopes = OauthScopes::requested(form.one("scope")?)
        .map_err(|error| ErrorResponse("invalid_scope", error.to_string()))?;
    let resources = Resources::parse(form.all("resource"), &core.oauth.settings.resources())
        .map_err(|error| ErrorResponse("invalid_target", error.to_string()))?;
    Ok((challenge, scopes, resources))
}

/// The redirect with response fields. `iss` protects apps that use several servers against mix-up attacks (RFC 9207).
fn location(core: &Core, redirect: &RedirectUri, state: Option<&str>, fields: &[(&str, &str)]) -> String {
    let mut all = fields.to_vec();
    all.extend(state.map(|state| ("state", state)));
    all.push(("iss", &core.oauth.settings.issuer));
    redirect.with_query(&all)
}

/// A request as stored until the user decides.
#[derive(Deserialize, Serialize)]
pub(super) struct StoredRequest {
    client: String,
    client_name: String,
    client_host: Option<String>,
    redirect: String,
    state: Option<String>,
    challenge: String,
    /// The bits. Requests that an earlier version has stored are for `grabs`.
    #[serde(default = "grabs")]
    scopes: u8,
    resources: String,
    #[serde(default)]
    device: Option<StoredDevice>,
}

#[derive(Deserialize, Serialize)]
struct StoredDevice {
    user_code: String,
    hash: [u8; 32],
}

const fn grabs() -> u8 {
    OauthScopes::GRABS.bits()
}

/// Stores a request until the user decides. The returned secret is put into the consent form. It is valid once, for a
/// limited time and for this user only, so nobody else can submit the decision.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "oauth.create_consent_request", skip_all)]
pub async fn create_consent_request(
    core: &Core,
    user: UserId,
    request: &AuthorizationRequest,
) -> Result<ConsentToken, Error> {
    let ticket = ConsentToken::new(&random::secret_text()).expect("32 bytes are 43 base64url characters");
    let new = NewConsentRequest {
        hash: digest::of(ticket.expose()),
        user,
        request: StoredRequest::of(request).to_text(),
        expires_at: core.clock.now() + CONSENT_LIFE,
    };
    core.store.oauth().create_consent_request(new).await?;
    Ok(ticket)
}

/// Takes the stored request of this user; `None` when it is already used, expired, or belongs to another user.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "oauth.take_consent_request", skip_all)]
pub async fn take_consent_request(
    core: &Core,
    user: UserId,
    ticket: &str,
) -> Result<Option<AuthorizationRequest>, Error> {
    let Some(ticket) = ConsentToken::parse(ticket) else { return Ok(None) };
    let taken = core.store.oauth().consume_consent_request(digest::of(ticket.expose()), user, core.clock.now()).await;
    let Some(request) = taken? else { return Ok(None) };
    StoredRequest::read(&request).map(Some)
}

impl StoredRequest {
    pub(super) fn of(request: &AuthorizationRequest) -> Self {
        let AuthorizationRequest {
            client,
            client_name,
            client_host,
            redirect,
            is_loopback: _,
            device,
            state,
            challenge,
            scopes,
            resources,
        } = request;
        Self {
            client: client.to_string(),
            client_name: client_name.clone(),
            client_host: client_host.clone(),
            redirect: redirect.to_string(),
            state: state.clone(),
            challenge: challenge.as_str().to_owned(),
            scopes: scopes.bits(),
            resources: resources.to_text(),
            device: device
                .as_ref()
                .map(|device| StoredDevice { user_code: device.user_code.as_str().to_owned(), hash: device.hash }),
        }
    }

    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers serialize to JSON")
    }

    pub(super) fn read(text: &str) -> Result<AuthorizationRequest, Error> {
        let stored: Self = serde_json::from_str(text)?;
        stored.into_request().ok_or_else(|| Error::state("a stored consent request is malformed"))
    }

    fn into_request(self) -> Option<AuthorizationRequest> {
        let redirect = RedirectUri::parse(&self.redirect).ok()?;
        Some(AuthorizationRequest {
            client: ClientId::parse(&self.client)?,
            client_name: self.client_name,
            client_host: self.client_host,
            is_loopback: redirect.is_loopback(),
            redirect,
            device: match self.device {
                Some(StoredDevice { user_code, hash }) => {
                    Some(Device { user_code: UserCode::parse(&user_code)?, hash })
                }
                None => None,
            },
            state: self.state,
            challenge: Challenge::parse(&self.challenge, Some("S256"))?,
            scopes: OauthScopes::from_bits(self.scopes)?,
            resources: Resources::from_text(&self.resources),
        })
    }
}

/// Grants the app what it asks for in one environment of one of the user's teams. Returns the redirect with the code, or for a
/// program on another device the page that says so.
///
/// # Errors
/// [`AuthorizationError::Page`] when the user is not in the team, has a role without apps, or is not verified and allows live
/// access, or when the program does not wait any more.
#[tracing::instrument(name = "oauth.allow", skip_all)]
pub async fn allow(
    core: &Core,
    user: UserId,
    request: AuthorizationRequest,
    team: TeamId,
    environment: Environment,
) -> Result<String, AuthorizationError> {
    if environment == Environment::Live && !is_verified(core, user).await? {
        let text = "Live access needs a verified e-mail address. Follow the link that was sent to you, or allow access \
                    to the test environment.";
        return Err(AuthorizationError::Page(text.to_owned()));
    }
    let code = AuthorizationCode::new(&random::secret_text()).expect("32 bytes are 43 base64url characters");
    let now = core.clock.now();
    let grant = random::grant_id(now);
    let (code_hash, location) = match &request.device {
        Some(device) => (device_code::code_hash(&device.hash), device_code::answered_page(core, true)),
        None => {
            let fields = [("code", code.expose())];
            (digest::of(code.expose()), location(core, &request.redirect, request.state.as_deref(), &fields))
        }
    };
    let waiting = request.device.as_ref().map(|device| device.hash);
    let scope = request.scopes.to_string();
    let consent = NewConsent {
        grant,
        user,
        team,
        environment,
        client: request.client,
        client_name: request.client_name,
        client_host: request.client_host,
        scopes: request.scopes,
        resources: request.resources,
        code: code_hash,
        redirect: request.redirect,
        challenge: request.challenge,
        now,
    };
    match core.store.oauth().consent(consent).await? {
        ConsentOutcome::Granted => {
            let environment = environment.as_str();
            tracing::info!(grant.id = %grant, team.id = %team, environment, scope, "app access granted");
            match waiting {
                Some(hash) if !core.store.oauth().answer_device_request(hash, true, now).await? => {
                    Err(AuthorizationError::Page(device_code::NOT_WAITING.to_owned()))
                }
                Some(_) | None => Ok(location),
            }
        }
        ConsentOutcome::NotMember => {
            Err(AuthorizationError::Page("You are not in that team, or it is inactive.".to_owned()))
        }
        ConsentOutcome::NotAllowed => {
            Err(AuthorizationError::Page("Your role in that team does not allow you to connect apps.".to_owned()))
        }
    }
}

/// The redirect after the user denied the request, or for a program on another device the page that says so.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "oauth.deny", skip_all)]
pub async fn deny(core: &Core, request: &AuthorizationRequest) -> Result<String, Error> {
    if let Some(device) = &request.device {
        core.store.oauth().answer_device_request(device.hash, false, core.clock.now()).await?;
        return Ok(device_code::answered_page(core, false));
    }
    let fields = [("error", "access_denied"), ("error_description", "The person did not allow it.")];
    Ok(location(core, &request.redirect, request.state.as_deref(), &fields))
}
