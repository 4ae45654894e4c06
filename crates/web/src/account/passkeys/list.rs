//! `/account/passkeys`: the list.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::accounts::PASSKEYS as MAX_PASSKEYS;
use grabd_engine::accounts::{self, PasskeyInfo};
use http::StatusCode;

use super::NEW;
use crate::account::PATH;
use crate::extract::{QueryForm, SignedInPage};
use crate::page::{Layout, page};
use crate::paths::PASSKEYS;
use crate::problem::Problem;
use crate::state::Web;
use crate::time_format::Moment;

#[derive(Template)]
#[template(path = "passkeys.html")]
struct PasskeysPage {
    layout: Layout,
    notice: &'static str,
    is_available: bool,
    max: u64,
    add: &'static str,
    passkeys: Vec<PasskeyRow>,
}

/// A passkey in the list.
struct PasskeyRow {
    path: String,
    name: String,
    since: Moment,
    used: Option<Moment>,
}

impl From<PasskeyInfo> for PasskeyRow {
    fn from(PasskeyInfo { id, name, created_at, last_used_at }: PasskeyInfo) -> Self {
        Self { path: format!("{PASSKEYS}/{id}"), name, since: created_at.into(), used: last_used_at.map(Into::into) }
    }
}

/// Notices, by the query parameter that shows them.
const NOTICES: [(&str, &str); 4] = [
    ("added", "Passkey added. You can sign in with it."),
    ("renamed", "Passkey renamed."),
    ("removed", "Passkey removed. Delete it on your device as well."),
    ("off", "Passkey removed, and the second factor is off. Delete the passkey on your device as well."),
];

/// Shows the page.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    SignedInPage(user): SignedInPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let passkeys = accounts::list_passkeys(&web.core, user.session.user.id).await?;
    let template = PasskeysPage {
        layout: web.user_layout(&user.session, PATH),
        notice: NOTICES.iter().find(|(word, _)| query.has(word)).map_or("", |(_, notice)| *notice),
        is_available: accounts::has_passkeys(&web.core),
        max: MAX_PASSKEYS,
        add: NEW,
        passkeys: passkeys.into_iter().map(PasskeyRow::from).collect(),
    };
    Ok(page(StatusCode::OK, &template))
}
