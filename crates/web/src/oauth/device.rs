//! `/device`: a user types the code that a program without a browser shows, and allows it on the consent page.

use std::sync::Arc;

use askama::Template;
use axum::extract::{OriginalUri, Request, State};
use axum::response::Response;
use grabd_domain::oauth::UserCode;
use grabd_engine::oauth::{self, DEVICE_PATH};
use http::StatusCode;

use super::authorize;
use crate::client_ip::ClientIp;
use crate::extract::{UncheckedForm, take_page};
use crate::form::{Field, FieldError, Form};
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::response::see_other;
use crate::session::{SignedIn, sign_in_url};
use crate::state::Web;

const CODE: &str = "user_code";
/// With separators.
const MAX_CODE_CHARS: u32 = 20;

#[derive(Template)]
#[template(path = "device.html")]
struct DevicePage<'a> {
    layout: Layout,
    form_token: &'a str,
    action: &'static str,
    email: &'a str,
    code: Field,
    errors: &'a [FieldError],
}

#[derive(Template)]
#[template(path = "device_answered.html")]
struct AnsweredPage {
    layout: Layout,
    is_allowed: bool,
}

/// Shows the form, or what was answered. A URL with the code only fills it in: the user must compare it.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    OriginalUri(uri): OriginalUri,
    request: Request,
) -> Result<Response, Problem> {
    take_page(&web, client, request.headers()).await?;
    let query = Form::parse(uri.query().unwrap_or_default().as_bytes());
    if query.has("answer") {
        let is_allowed = query.get("answer") == "allowed";
        return Ok(page(StatusCode::OK, &AnsweredPage { layout: web.plain_layout(), is_allowed }));
    }
    match web.signed_in(request.headers()).await? {
        Some(user) => Ok(form(&web, &user, StatusCode::OK, query.get(CODE), &[])),
        None => Ok(see_other(&sign_in_url(uri.path_and_query().map_or(DEVICE_PATH, |own| own.as_str())))),
    }
}

/// Looks up the code, and shows the consent page of its program.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    request: Request,
) -> Result<Response, Problem> {
    take_page(&web, client, request.headers()).await?;
    let sent = UncheckedForm::read(request).await?;
    let Some(user) = web.signed_in(sent.headers()).await? else { return Err(Problem::signed_out()) };
    let input = sent.check(&user.session)?;
    web.limits.user_codes.take(user.session.user.id).map_err(Problem::too_many_changes)?;
    let typed = input.get(CODE);
    let refuse = |message: &str| {
        let errors = [FieldError { field: CODE, message: message.to_owned() }];
        Ok(form(&web, &user, StatusCode::UNPROCESSABLE_ENTITY, typed, &errors))
    };
    let Some(code) = UserCode::parse(typed) else {
        return refuse("A code has eight letters, such as BCDF-GHJK.");
    };
    match oauth::find_device(&web.core, &code).await? {
        Some(asked) => authorize::page(&web, &user, &asked, false, StatusCode::OK, &[]).await,
        None => refuse("No program waits with this code. Codes are valid for ten minutes, and for one answer."),
    }
}

fn form(web: &Web, user: &SignedIn, status: StatusCode, typed: &str, errors: &[FieldError]) -> Response {
    let shown = UserCode::parse(typed).map_or_else(|| typed.to_owned(), |code| code.to_string());
    let code = Field {
        name: CODE,
        label: "Code",
        kind: "text",
        autocomplete: "off",
        max_length: MAX_CODE_CHARS,
        hint: "Eight letters, as the program shows them.",
        value: shown,
        error: None,
    };
    page(
        status,
        &DevicePage {
            layout: web.plain_layout(),
            form_token: &user.session.csrf,
            action: DEVICE_PATH,
            email: user.session.user.email.as_str(),
            code: code.with_errors(errors),
            errors,
        },
    )
}
