//! `/`: what grabd does and costs, and a capture to try without signing in.
//!
//! The trial draws what a test key would get. Nothing is looked up, visited or kept, and the picture is written into the
//! answer itself: there is no address under which it could be shown to others as ours.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use grabd_domain::Fault;
use grabd_domain::capture::{CaptureRequest, Format};
use grabd_domain::pricing::Prices;
use grabd_engine::grabs::{self, Preview};
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};

use crate::Web;
use crate::forgery::{self, Visit};
use crate::form::{Complaint, Form};
use crate::frame::Client;
use crate::grabs::options::{self, Text};
use crate::grabs::repeat;
use crate::number::{grouped, money};
use crate::page::{Frame, Rights, page_with};
use crate::problem::Problem;

/// The path of this page.
pub(crate) const PATH: &str = "/";

#[derive(Template)]
#[template(path = "start.html")]
struct StartPage<'a> {
    frame: Frame,
    form_token: String,
    picture: &'a str,
    sign_up: bool,
    url: Text,
    trial: Option<Trial>,
    errors: &'a [Complaint],
    per_grab: String,
    prices: &'a Prices,
    offers: Vec<Offer>,
    curl: String,
    api: String,
    mcp_url: &'a str,
}

/// What was drawn.
struct Trial {
    source: String,
    host: String,
    curl: String,
}

/// Credits and what they cost.
struct Offer {
    credits: String,
    price: String,
    per: &'static str,
    rest: String,
}

/// The page.
pub(crate) async fn show(State(web): State<Arc<Web>>, client: Client, request: Request) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    start(&web, request.headers(), StatusCode::OK, &Form::default(), None, &[]).await
}

/// A trial.
pub(crate) async fn submit(State(web): State<Arc<Web>>, client: Client, request: Request) -> Result<Response, Problem> {
    web.limits.trials.take(client.0)?;
    let (head, body) = request.into_parts();
    let sent = Form::read(&head.headers, body).await?;
    forgery::check_visit(&web.cookies, &head.headers, &sent)?;
    let CaptureRequest { url, .. } = options::request(&sent);
    // Half the bytes of a PNG, which matters for what is written into a page.
    let format = Some(Format::Jpeg.as_str().to_owned());
    match grabs::preview(&web.core, &CaptureRequest { url, format, ..CaptureRequest::default() }).await {
        Ok(preview) => {
            let trial = trial(&web, preview)?;
            start(&web, &head.headers, StatusCode::OK, &sent, Some(trial), &[]).await
        }
        Err(fault) => {
            let errors = [complaint(fault)?];
            start(&web, &head.headers, StatusCode::UNPROCESSABLE_ENTITY, &sent, None, &errors).await
        }
    }
}

fn trial(web: &Web, preview: Preview) -> Result<Trial, Problem> {
    let Preview { spec, image } = preview;
    let asked = CaptureRequest { url: Some(spec.url.as_str().to_owned()), ..CaptureRequest::default() };
    let asked = grabd_domain::capture::CaptureSpec::parse(&asked)?;
    Ok(Trial {
        source: format!("data:{};base64,{}", spec.format.media_type(), BASE64.encode(image)),
        host: spec.url.host().to_string(),
        curl: repeat::curl(web.core.public_url(), &asked),
    })
}

/// There is one field, so whatever is wrong is about it.
fn complaint(fault: Fault) -> Result<Complaint, Fault> {
    options::complaint(fault).map(|complaint| Complaint { field: "url", ..complaint })
}

async fn start(
    web: &Web,
    headers: &HeaderMap,
    status: StatusCode,
    sent: &Form,
    trial: Option<Trial>,
    errors: &[Complaint],
) -> Result<Response, Problem> {
    let visit = Visit::of(&web.cookies, headers);
    let signed_in = web.signed_in(headers).await?;
    let frame = signed_in.as_ref().map_or_else(|| web.plain_frame(), |person| web.frame_of(&person.session, PATH));
    let example = CaptureRequest { url: Some("https://example.com/".to_owned()), ..CaptureRequest::default() };
    let prices = &web.core.pricing().pricing;
    let error = errors.first().map(|error| error.message.clone());
    let rights = Rights { picture_within: trial.is_some(), ..Rights::default() };
    let template = StartPage {
        frame,
        form_token: visit.form_token(),
        picture: &web.assets.picture.path,
        sign_up: web.core.may_sign_up(),
        url: options::url(sent, error),
        trial,
        errors,
        per_grab: money(prices.per_grab_usd, &prices.currency),
        offers: offers(prices),
        prices,
        curl: repeat::curl(web.core.public_url(), &grabd_domain::capture::CaptureSpec::parse(&example)?),
        api: format!("{}/v1", web.core.public_url()),
        mcp_url: &web.core.oauth().mcp_url,
    };
    let mut response = page_with(rights, status, &template);
    response.headers_mut().append(SET_COOKIE, visit.cookie(&web.cookies));
    Ok(response)
}

fn offers(prices: &Prices) -> Vec<Offer> {
    let Prices { annual, prepaid_packages, currency, .. } = prices;
    let annual = Offer {
        credits: grouped(annual.credits_per_year),
        price: money(annual.price_usd, currency),
        per: "a year",
        rest: annual.reset_policy.clone(),
    };
    let prepaid = prepaid_packages.iter().map(|package| Offer {
        credits: grouped(package.credits),
        price: money(package.price_usd, currency),
        per: "once",
        rest: package.reset_policy.clone(),
    });
    std::iter::once(annual).chain(prepaid).collect()
}
