//! The way of a request to the consent page and back.

use grabd_domain::Fault;
use grabd_domain::credentials::{Code, Environment, Ticket};
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::oauth::{Challenge, ClientId, REQUEST_BYTES, RedirectUri, Resources, TICKET_LIFE, check_scope};
use grabd_store::{Consented, NewConsent, NewTicket};
use serde::{Deserialize, Serialize};

use super::clients::{self, Client, Unknown};
use super::form::{Fields, Form, Repeated};
use crate::chance;
use crate::core::{Core, inside};
use crate::digest;

/// A request that may be shown to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Which app asks.
    pub client: ClientId,
    /// What it calls itself: its own words, to be shown as text and never believed.
    pub client_name: String,
    /// The host at which it describes itself, if it does.
    pub client_host: Option<String>,
    /// Where the answer goes.
    pub redirect: RedirectUri,
    /// Does it go to a program on the person's own machine? Any other program there could pretend to be this one.
    pub is_loopback: bool,
    state: Option<String>,
    challenge: Challenge,
    resources: Resources,
}

/// Why a request gets no consent page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// To be told to the person: the browser must not be sent anywhere. One or two sentences.
    Page(String),
    /// To be told to the app: the whole `Location`, to be answered with 303.
    Redirect(String),
    /// Our own failure.
    Inside(Fault),
}

/// What the app is told is wrong (RFC 6749 section 4.1.2.1).
struct Complaint(&'static str, String);

impl From<Repeated> for Complaint {
    fn from(repeated: Repeated) -> Self {
        Self("invalid_request", repeated.sentence())
    }
}

impl Asked {
    /// What a policy's `form-action` must allow beside ourselves, or the browser stops the answer on its way.
    pub fn redirect_origin_or_scheme(&self) -> String {
        self.redirect.origin_or_scheme()
    }
}

/// Judges a request. Without a known app and one of its own addresses, nobody is sent anywhere.
///
/// # Errors
/// Why it gets no consent page.
pub async fn check_request(core: &Core, fields: &Fields) -> Result<Asked, Refusal> {
    let form = Form(fields);
    let page = |text: &str| Refusal::Page(text.to_owned());
    if form.bytes() > REQUEST_BYTES {
        return Err(page("The app asked with a request that is too long."));
    }
    let id = match form.one("client_id") {
        Ok(Some(text)) => ClientId::parse(text).ok_or_else(|| page(UNKNOWN))?,
        Ok(None) => return Err(page("The app did not say which one it is: `client_id` is missing.")),
        Err(Repeated(_)) => return Err(page("The app named itself twice: `client_id` is repeated.")),
    };
    let client = clients::find(core, id).await.map_err(unknown)?;
    let redirect = redirect(form, &client).map_err(|text| page(&text))?;
    let judged = judge(core, form);
    let state = form.one("state").ok().flatten().map(str::to_owned);
    match judged {
        Ok((challenge, resources)) => Ok(Asked {
            client: client.id,
            client_name: client.name,
            client_host: client.host,
            is_loopback: redirect.is_loopback(),
            redirect,
            state,
            challenge,
            resources,
        }),
        Err(Complaint(error, description)) => {
            let fields = [("error", error), ("error_description", &description)];
            Err(Refusal::Redirect(location(core, &redirect, state.as_deref(), &fields)))
        }
    }
}

const UNKNOWN: &str = "The app is not known here. It may have registered long ago and never been used: remove it where \
                       you use it, and add it again.";

fn unknown(unknown: Unknown) -> Refusal {
    match unknown {
        Unknown::NotRegistered => Refusal::Page(UNKNOWN.to_owned()),
        Unknown::Document(why) => {
            let cause = std::error::Error::source(&why).map(ToString::to_string);
            tracing::info!(%why, cause, "an app's metadata document cannot be used");
            Refusal::Page(format!("What the app says of itself at its address cannot be used: {why}."))
        }
        Unknown::Inside(fault) => Refusal::Inside(fault),
    }
}

/// The address to answer to: the one that is asked for, or the only one there is.
fn redirect(form: Form<'_>, client: &Client) -> Result<RedirectUri, String> {
    let unknown = || "The app wants the answer at an address that it has not registered.".to_owned();
    match (form.one("redirect_uri"), client.redirect_uris.as_slice()) {
        (Err(Repeated(_)), _) => Err("The app named two addresses: `redirect_uri` is repeated.".to_owned()),
        (Ok(None), [only]) => Ok(only.clone()),
        (Ok(None), _) => Err("The app did not say where the answer goes: `redirect_uri` is missing.".to_owned()),
        (Ok(Some(text)), known) => {
            let asked = RedirectUri::parse(text).map_err(|_| unknown())?;
            known.iter().any(|known| known.matches(&asked)).then_some(asked).ok_or_else(unknown)
        }
    }
}

fn judge(core: &Core, form: Form<'_>) -> Result<(Challenge, Resources), Complaint> {
    let invalid = |text: &str| Complaint("invalid_request", text.to_owned());
    form.one("state")?;
    match form.one("response_type")? {
        Some("code") => {}
        Some(_) => {
            return Err(Complaint("unsupported_response_type", "`response_type` must be code.".to_owned()));
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
    check_scope(form.one("scope")?).map_err(|error| Complaint("invalid_scope", error.to_string()))?;
    let resources = Resources::parse(form.all("resource"), &core.settings.oauth.resources())
        .map_err(|error| Complaint("invalid_target", error.to_string()))?;
    Ok((challenge, resources))
}

/// Every answer says who answers, so that an app which talks to several cannot be fooled (RFC 9207).
fn location(core: &Core, redirect: &RedirectUri, state: Option<&str>, fields: &[(&str, &str)]) -> String {
    let mut all = fields.to_vec();
    all.extend(state.map(|state| ("state", state)));
    all.push(("iss", &core.settings.oauth.issuer));
    redirect.with(&all)
}

/// A request as it waits for its answer.
#[derive(Deserialize, Serialize)]
struct Kept {
    client: String,
    client_name: String,
    client_host: Option<String>,
    redirect: String,
    state: Option<String>,
    challenge: String,
    resources: String,
}

/// Keeps what a person is asked. The ticket belongs into the form: only with it, only once, only in time and only for
/// this person does an answer count, so nobody else can give it for them.
///
/// # Errors
/// Only our own.
pub async fn ask(core: &Core, user: UserId, asked: &Asked) -> Result<Ticket, Fault> {
    let Asked { client, client_name, client_host, redirect, is_loopback: _, state, challenge, resources } = asked;
    let kept = Kept {
        client: client.to_string(),
        client_name: client_name.clone(),
        client_host: client_host.clone(),
        redirect: redirect.to_string(),
        state: state.clone(),
        challenge: challenge.as_str().to_owned(),
        resources: resources.to_text(),
    };
    let ticket = Ticket::new(&chance::secret_text()).expect("32 bytes are 43 base64url characters");
    let new = NewTicket {
        hash: digest::of(ticket.expose()),
        user,
        request: serde_json::to_string(&kept).expect("texts become JSON"),
        expires_at: core.clock.now() + TICKET_LIFE,
    };
    core.store.keep_ticket(new).await.map_err(inside("oauth.ask"))?;
    Ok(ticket)
}

/// What this person was asked; `None` when it was answered before, is somebody else's or too old.
///
/// # Errors
/// Only our own.
pub async fn redeem(core: &Core, user: UserId, ticket: &str) -> Result<Option<Asked>, Fault> {
    let Some(ticket) = Ticket::parse(ticket) else { return Ok(None) };
    let taken = core.store.take_ticket(digest::of(ticket.expose()), user, core.clock.now()).await;
    let Some(request) = taken.map_err(inside("oauth.redeem"))? else { return Ok(None) };
    let kept: Kept = serde_json::from_str(&request).map_err(inside("oauth.redeem"))?;
    kept.read().map(Some).ok_or_else(|| inside("oauth.redeem")("a kept request that was never asked"))
}

impl Kept {
    fn read(self) -> Option<Asked> {
        let redirect = RedirectUri::parse(&self.redirect).ok()?;
        Some(Asked {
            client: ClientId::parse(&self.client)?,
            client_name: self.client_name,
            client_host: self.client_host,
            is_loopback: redirect.is_loopback(),
            redirect,
            state: self.state,
            challenge: Challenge::parse(&self.challenge, Some("S256"))?,
            resources: Resources::from_text(&self.resources),
        })
    }
}

/// Lets the app act for one of the person's teams in one environment; where the browser is sent to, with a code.
///
/// # Errors
/// [`Refusal::Page`] for a team that is not the person's.
pub async fn allow(
    core: &Core,
    user: UserId,
    asked: Asked,
    team: TeamId,
    environment: Environment,
) -> Result<String, Refusal> {
    let code = Code::new(&chance::secret_text()).expect("32 bytes are 43 base64url characters");
    let now = core.clock.now();
    let grant = chance::grant_id(now);
    let answer = location(core, &asked.redirect, asked.state.as_deref(), &[("code", code.expose())]);
    let consent = NewConsent {
        grant,
        user,
        team,
        environment,
        client: asked.client,
        client_name: asked.client_name,
        client_host: asked.client_host,
        resources: asked.resources,
        code: digest::of(code.expose()),
        redirect: asked.redirect,
        challenge: asked.challenge,
        now,
    };
    match core.store.consent(consent).await {
        Ok(Consented::Yes) => {
            tracing::info!(grant.id = %grant, team.id = %team, environment = environment.as_str(), "an app was allowed");
            Ok(answer)
        }
        Ok(Consented::NotTheirs) => Err(Refusal::Page("You are not in that team, or it is inactive.".to_owned())),
        Err(error) => Err(Refusal::Inside(inside("oauth.allow")(error))),
    }
}

/// Where the browser is sent to when the person does not want it.
pub fn deny(core: &Core, asked: &Asked) -> String {
    let fields = [("error", "access_denied"), ("error_description", "The person did not allow it.")];
    location(core, &asked.redirect, asked.state.as_deref(), &fields)
}
