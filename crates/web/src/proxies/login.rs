//! `/teams/{team}/proxies/{proxy}/login`: replaces the user name and the password of a proxy, or removes both.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::ids::ProxyId;
use grabd_domain::proxies::ProxyRequest;
use grabd_engine::proxies;
use http::StatusCode;

use super::PAGE;
use super::change::FormPage;
use super::fields::{self, PASSWORD, USERNAME};
use crate::extract::{TeamForm, TeamPage};
use crate::form::FieldError;
use crate::page::page;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::team::TeamContext;

/// Shows the form, without the current values.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    Path((_, proxy)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let (proxy, _) = at.find_proxy_counted(&web, &proxy).await?;
    Ok(form(&web, &at, proxy.id, StatusCode::OK, "", &[]))
}

/// Saves the user name and the password.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    Path((_, proxy)): Path<(String, String)>,
    TeamForm { at, form: input }: TeamForm,
) -> Result<Response, Problem> {
    let (proxy, caller) = at.find_proxy_counted(&web, &proxy).await?;
    let request = ProxyRequest {
        username: Some(input.get(USERNAME).trim().to_owned()),
        password: Some(input.get(PASSWORD).to_owned()),
        ..ProxyRequest::default()
    };
    match proxies::change(&web.core, caller, proxy.id, &request).await {
        Ok(_) => Ok(see_other(&format!("{}?changed", at.path(PAGE)))),
        Err(error) => {
            let errors = [fields::field_error(error.into_fault(), &input)?];
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Ok(form(&web, &at, proxy.id, status, input.get(USERNAME), &errors))
        }
    }
}

fn form(
    web: &Web,
    at: &TeamContext,
    proxy: ProxyId,
    status: StatusCode,
    username: &str,
    errors: &[FieldError],
) -> Response {
    let template = FormPage {
        layout: web.proxy_layout(at),
        form_token: at.form_token(),
        title: "Replace the password of a proxy",
        about: "Both are replaced. They are encrypted, and never shown.",
        action: at.proxy_path(proxy, "login"),
        back: at.path(PAGE),
        required: Vec::new(),
        optional: vec![
            fields::username_field("Leave both empty if the proxy needs none any more.", username, errors),
            fields::password_field("", errors),
        ],
        errors,
    };
    page(status, &template)
}
