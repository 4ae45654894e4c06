//! `/`: the start page, with prices and a trial capture without sign-in.
//!
//! Visitors capture sample pages with options of their choice: see [`crate::samples`].
//!
//! The trial with a URL of their own returns the placeholder that a test key would get. The page is not visited and
//! nothing is stored. The image is embedded in the response, so that it has no URL that could be shared as if it were
//! ours.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use grabd_domain::Fault;
use grabd_domain::capture::{CaptureRequest, Format};
use grabd_domain::pricing::Prices;
use grabd_engine::billing;
use grabd_engine::grabs::{self, Preview};
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};

use crate::client_ip::ClientIp;
use crate::extract::{QueryForm, TrialLimit, Visit, VisitorForm, VisitorPage};
use crate::form::{FieldError, Form};
use crate::grabs::options::{self, Text};
use crate::grabs::snippets::{self, Snippet};
use crate::number::money;
use crate::offers::Offers;
use crate::page::{CspOptions, Layout, page, page_with};
use crate::problem::Problem;
use crate::samples::{self, Captured, EXAMPLE_URL, Playground};
use crate::state::Web;

/// The path of this page.
pub(crate) const PATH: &str = "/";
/// The code for the query of one of the forms, with which the page's script replaces the former one.
pub(crate) const CODE: &str = "/code";

/// The forms, as selectors.
const SAMPLE_FORM: &str = "form.samples";
const OWN_FORM: &str = ".own-url";
/// What visitors read who try the URL that simulates a team without credits.
const NO_CREDITS: &str = "The team has no credits left.";

#[derive(Template)]
#[template(path = "start.html")]
struct StartPage<'a> {
    layout: Layout,
    form_token: String,
    picture: &'a str,
    phone: &'a str,
    sign_up: bool,
    /// What new users get. Empty if the operator grants nothing.
    reward: String,
    playground: Option<Playground>,
    /// The capture that was asked for, or why there is none.
    result: Option<Result<Captured, &'static str>>,
    /// The image before anything was asked for.
    preview: Option<Captured>,
    url: Text,
    trial: Option<Trial>,
    errors: &'a [FieldError],
    code_path: &'static str,
    /// Which form the code is for, as a selector.
    code_form: &'static str,
    /// Programs for what was captured last, or for an example.
    snippets: Result<Vec<Snippet>, String>,
    per_grab: String,
    prices: &'a Prices,
    offers: Offers,
    /// Whether credits can be bought here.
    can_buy: bool,
    /// Whether there are no pages about running the service.
    hides_self_hosting: bool,
    api: String,
    mcp_url: &'a str,
}

/// The code alone.
#[derive(Template)]
#[template(path = "start_code.html")]
struct CodePart {
    /// The programs, or why there are none.
    snippets: Result<Vec<Snippet>, String>,
}

/// The result of a trial.
struct Trial {
    source: String,
    host: String,
    request: CaptureRequest,
}

/// Shows the page.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    VisitorPage { client, headers, query, .. }: VisitorPage,
) -> Result<Response, Problem> {
    let playground = samples::playground(&web, client, &query).await?;
    start(&web, &headers, StatusCode::OK, Shown { playground, ..Shown::default() }).await
}

/// Runs a trial capture.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    VisitorForm { client, headers, form: input, .. }: VisitorForm<TrialLimit>,
) -> Result<Response, Problem> {
    let CaptureRequest { url, .. } = options::request(&input);
    // JPEG takes half the bytes of PNG, which matters for an embedded image.
    let format = Some(Format::Jpeg.as_str().to_owned());
    let playground = samples::playground(&web, client, &Form::default()).await?;
    match grabs::preview(&web.core, &CaptureRequest { url, format, ..CaptureRequest::default() }).await {
        Ok(preview) => {
            let trial = Some(trial(preview));
            start(&web, &headers, StatusCode::OK, Shown { playground, input, trial, errors: Vec::new() }).await
        }
        Err(error) => {
            let shown = Shown { playground, input, trial: None, errors: vec![field_error(error.into_fault())?] };
            start(&web, &headers, StatusCode::UNPROCESSABLE_ENTITY, shown).await
        }
    }
}

/// The code for a form: for the URL that the visitor has typed, or for a sample.
pub(crate) async fn code(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    web.limits.parts.take(client.0)?;
    let typed = || options::request(&Form::from_iter([("url", query.get("url"))]));
    let mut request = samples::requested(&web, &query).unwrap_or_else(typed);
    request.url.get_or_insert_with(|| EXAMPLE_URL.to_owned());
    let snippets = snippets::of_request(web.core.public_url(), &request);
    Ok(page(StatusCode::OK, &CodePart { snippets }))
}

fn trial(preview: Preview) -> Trial {
    let Preview { spec, image } = preview;
    Trial {
        source: format!("data:{};base64,{}", spec.format.media_type(), BASE64.encode(image)),
        host: spec.url.host().to_string(),
        request: CaptureRequest { url: Some(spec.url.as_str().to_owned()), ..CaptureRequest::default() },
    }
}

/// The form has a single field, so each error belongs to it.
fn field_error(fault: Fault) -> Result<FieldError, Fault> {
    // One of the URLs that simulate failures.
    if fault == Fault::CreditsExhausted {
        return Ok(FieldError { field: "url", message: NO_CREDITS.to_owned() });
    }
    options::field_error(fault).map(|field_error| FieldError { field: "url", ..field_error })
}

/// What a visitor asked for.
#[derive(Default)]
struct Shown {
    playground: Option<Playground>,
    input: Form,
    trial: Option<Trial>,
    errors: Vec<FieldError>,
}

async fn start(web: &Web, headers: &HeaderMap, status: StatusCode, shown: Shown) -> Result<Response, Problem> {
    let Shown { mut playground, input, trial, errors } = shown;
    let result = playground.as_mut().and_then(|playground| playground.result.take());
    let preview = playground.as_mut().and_then(|playground| playground.preview.take());
    let visit = Visit::of(&web.cookies, headers);
    let signed_in = web.signed_in(headers).await?;
    let layout = match &signed_in {
        Some(user) => web.user_layout(&user.session, PATH),
        None => web.visitor_layout(PATH),
    };
    let layout = Layout { script: Some(web.assets.start.path.clone()), ..layout };
    let example = CaptureRequest { url: Some(EXAMPLE_URL.to_owned()), ..CaptureRequest::default() };
    let captured = trial.as_ref().map(|trial| &trial.request);
    let code_form = if playground.is_none() || captured.is_some() { OWN_FORM } else { SAMPLE_FORM };
    let captured = captured.or(playground.as_ref().map(|playground| &playground.request)).unwrap_or(&example);
    let snippets = snippets::of_request(web.core.public_url(), captured);
    let prices = &web.core.pricing().pricing;
    let error = errors.first().map(|error| error.message.clone());
    let csp = CspOptions { data_images: trial.is_some(), connects: true, ..CspOptions::default() };
    let template = StartPage {
        layout,
        form_token: visit.form_token(),
        picture: &web.assets.picture.path,
        phone: &web.assets.phone.path,
        sign_up: web.core.may_sign_up(),
        reward: web.trial_captures(),
        playground,
        result,
        preview,
        url: options::url(&input, error),
        trial,
        errors: &errors,
        code_path: CODE,
        code_form,
        snippets,
        per_grab: money(prices.per_grab_usd, &prices.currency),
        offers: Offers::all(prices),
        can_buy: billing::can_buy(&web.core),
        hides_self_hosting: web.hides_self_hosting,
        prices,
        api: format!("{}/v1", web.core.public_url()),
        mcp_url: &web.core.oauth().mcp_url,
    };
    let mut response = page_with(csp, status, &template);
    response.headers_mut().append(SET_COOKIE, visit.cookie(&web.cookies));
    Ok(response)
}
