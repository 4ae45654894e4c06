//! `/account/second-factor/recovery-codes`: replaces the recovery codes.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_engine::accounts;
use http::StatusCode;

use super::off::{Confirmation, confirm_page, is_on};
use super::{CODES, codes_page, error_status, field_error, with_retry_after};
use crate::extract::{PasswordLimit, SignedInForm, SignedInPage};
use crate::fields::factor_answer;
use crate::paths::SECOND_FACTOR;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

const CONFIRMATION: Confirmation = Confirmation {
    title: "Create new recovery codes?",
    consequence: "The former recovery codes stop working.",
    button: "Create codes",
    is_bad: false,
    action: CODES,
};

/// Asks for the password and a code.
pub(crate) async fn show(State(web): State<Arc<Web>>, SignedInPage(user): SignedInPage) -> Result<Response, Problem> {
    if !is_on(&web, &user).await? {
        return Ok(see_other(SECOND_FACTOR));
    }
    confirm_page(&web, &user, &CONFIRMATION, StatusCode::OK, &[]).await
}

/// Replaces the codes. Each attempt costs a slow hash, so the sign-in limit applies.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    SignedInForm { user, form, .. }: SignedInForm<PasswordLimit>,
) -> Result<Response, Problem> {
    let (me, password, answer) = (&user.session.user, form.get("password"), factor_answer(&form));
    let error = match accounts::replace_recovery_codes(&web.core, me, &user.token, password, answer).await {
        Ok(codes) => return Ok(codes_page(&web, &user.session, false, &codes)),
        Err(error) => error,
    };
    let (error, retry_after_s) = field_error(error)?;
    let response = confirm_page(&web, &user, &CONFIRMATION, error_status(retry_after_s), &[error]).await?;
    Ok(with_retry_after(response, retry_after_s))
}
