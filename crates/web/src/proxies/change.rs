//! `/teams/{team}/proxies/{proxy}/change`: changes the name and the URL of a proxy.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::ids::ProxyId;
use grabd_domain::proxies::ProxyRequest;
use grabd_engine::proxies;
use http::StatusCode;

use super::PAGE;
use super::fields::{self, NAME, URL};
use crate::extract::{TeamForm, TeamPage};
use crate::form::{Field, FieldError};
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::team::TeamContext;

/// A form with fields for an existing proxy.
#[derive(Template)]
#[template(path = "proxy_form.html")]
pub(super) struct FormPage<'a> {
    pub(super) layout: Layout,
    pub(super) form_token: &'a str,
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    pub(super) action: String,
    pub(super) back: String,
    pub(super) required: Vec<Field>,
    pub(super) optional: Vec<Field>,
    pub(super) errors: &'a [FieldError],
}

/// Shows the form with the current values.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    Path((_, proxy)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let (proxy, _) = at.find_proxy_counted(&web, &proxy).await?;
    Ok(form(&web, &at, proxy.id, StatusCode::OK, (&proxy.name, &proxy.url.to_string()), &[]))
}

/// Saves the changes.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    Path((_, proxy)): Path<(String, String)>,
    TeamForm { at, form: input }: TeamForm,
) -> Result<Response, Problem> {
    let (proxy, caller) = at.find_proxy_counted(&web, &proxy).await?;
    let request = ProxyRequest { username: None, password: None, ..fields::request(&input) };
    match proxies::change(&web.core, caller, proxy.id, &request).await {
        Ok(_) => Ok(see_other(&format!("{}?changed", at.path(PAGE)))),
        Err(error) => {
            let errors = [fields::field_error(error.into_fault(), &input)?];
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Ok(form(&web, &at, proxy.id, status, (input.get(NAME), input.get(URL)), &errors))
        }
    }
}

fn form(
    web: &Web,
    at: &TeamContext,
    proxy: ProxyId,
    status: StatusCode,
    (name, url): (&str, &str),
    errors: &[FieldError],
) -> Response {
    let template = FormPage {
        layout: web.proxy_layout(at),
        form_token: at.form_token(),
        title: "Edit proxy",
        about: "The URL of a proxy with a password cannot be changed, because the password would be sent to another server. Remove \
                the password first, and set it again afterwards.",
        action: at.proxy_path(proxy, "change"),
        back: at.path(PAGE),
        required: vec![fields::name_field(name, errors), fields::url_field(url, errors)],
        optional: Vec::new(),
        errors,
    };
    page(status, &template)
}
