//! The first steps of a team in its gallery, until it can work or the reader hides them.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_domain::permissions::Permission;
use grabd_engine::accounts::{self, FirstSteps};

use crate::extract::TeamForm;
use crate::paths;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::team::TeamContext;

/// A step and where it is taken.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) path: String,
    pub(super) is_done: bool,
}

/// The steps of the team. Empty when the reader hid them, or when the team has captured a page and has a key or an app:
/// webhooks are only for some. Empty for readers whose role allows none of the steps.
pub(super) async fn steps(web: &Web, at: &TeamContext) -> Result<Vec<Step>, Problem> {
    if !at.may(Permission::Capture) {
        return Ok(Vec::new());
    }
    let found = accounts::find_first_steps(&web.core, at.team_member.team, at.team_member.user).await?;
    let Some(FirstSteps { key, grab, app, webhook }) = found else { return Ok(Vec::new()) };
    if grab && (key || app) {
        return Ok(Vec::new());
    }
    let step = |is_done, name, about, path| Step { name, about, path, is_done };
    Ok(vec![
        step(grab, "Capture a page", "Try it here, with a live or a placeholder image.", at.path("capture")),
        step(key, "Create an API key", "Capture pages from your code.", at.path("keys")),
        step(
            app,
            "Connect an agent",
            "Add the MCP server to an assistant or editor, or use the command line.",
            paths::CONNECT.to_owned(),
        ),
        step(webhook, "Add a webhook", "Get a message when a capture has finished.", at.path("webhooks/new")),
    ])
}

/// `/teams/{team}/first-steps`: hides the steps from the reader.
pub(crate) async fn hide(State(web): State<Arc<Web>>, TeamForm { at, .. }: TeamForm) -> Result<Response, Problem> {
    accounts::hide_first_steps(&web.core, at.team_member.team, at.team_member.user).await?;
    Ok(see_other(&at.path("grabs")))
}
