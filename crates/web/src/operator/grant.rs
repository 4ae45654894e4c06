//! `/operator/teams/{team}/credits`: grants credits, once for each form.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_engine::operator::{self, NewGrant, OperatorGranted};
use http::StatusCode;

use super::team::{CREDITS_FIELD, ONCE, REASON_FIELD, answer, complaint};
use super::{AtOperator, unknown};
use crate::Web;
use crate::forgery;
use crate::form::{Complaint, Form};
use crate::frame::see_other;
use crate::problem::Problem;

/// The form is on the team's page: for who loads the address of an answer again.
pub(super) async fn show(_: AtOperator, Path(team): Path<String>) -> Response {
    see_other(&format!("/operator/teams/{team}"))
}

/// Grants them.
pub(super) async fn submit(
    State(web): State<Arc<Web>>,
    at: AtOperator,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let sent = Form::read(&head.headers, body).await?;
    forgery::check(&head.headers, &sent, &at.session.csrf)?;
    let id = team.parse().map_err(|_| unknown())?;
    let again = async |errors: &[Complaint]| {
        answer(&web, &at, &team, StatusCode::UNPROCESSABLE_ENTITY, &sent, false, errors).await
    };
    let new = match NewGrant::parse(sent.one(CREDITS_FIELD), sent.one(REASON_FIELD), sent.one(ONCE)) {
        Ok(new) => new,
        Err(mistakes) => return again(&mistakes.into_iter().map(complaint).collect::<Vec<_>>()).await,
    };
    match operator::grant(&web.core, &at.operator, id, &new).await?.ok_or_else(unknown)? {
        OperatorGranted::New(_) | OperatorGranted::Repeated(_) => {
            Ok(see_other(&format!("/operator/teams/{id}?granted")))
        }
        OperatorGranted::Otherwise => {
            let message =
                "This form was sent before, with other credits. Look at the lots before you send it as a new one.";
            again(&[Complaint { field: "", message: message.to_owned() }]).await
        }
    }
}
