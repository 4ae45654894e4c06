//! `/apps`: the connected apps.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_engine::oauth::{self, ConnectedApp};
use grabd_engine::webhooks;
use http::StatusCode;

use super::PATH;
use crate::environments::environment_name;
use crate::extract::{QueryForm, SignedInPage};
use crate::page::{Layout, page};
use crate::paths;
use crate::problem::Problem;
use crate::state::Web;
use crate::time_format::Moment;

#[derive(Template)]
#[template(path = "apps.html")]
struct AppsPage {
    layout: Layout,
    form_token: String,
    mcp_url: String,
    is_disconnected: bool,
    apps: Vec<App>,
    uncertain: Vec<UncertainTeam>,
}

/// An app in the list.
struct App {
    id: String,
    name: String,
    host: Option<String>,
    team: String,
    environment: &'static str,
    is_live: bool,
    connected: Moment,
    used: Option<Moment>,
    /// Whether it may also use webhooks and delete images.
    manages: bool,
    /// How many webhooks end with it.
    webhooks: u32,
}

/// A team with webhooks whose creator was not recorded.
struct UncertainTeam {
    name: String,
    webhooks: String,
}

impl From<ConnectedApp> for App {
    fn from(app: ConnectedApp) -> Self {
        let ConnectedApp {
            grant,
            client_name,
            client_host,
            team_name,
            environment,
            created_at,
            last_used_at,
            manages,
            webhooks,
        } = app;
        Self {
            id: grant.to_string(),
            name: client_name,
            host: client_host,
            team: team_name,
            environment: environment_name(environment),
            is_live: environment == Environment::Live,
            connected: created_at.into(),
            used: last_used_at.map(Moment::from),
            manages,
            webhooks,
        }
    }
}

/// Shows the list.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    SignedInPage(user): SignedInPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let apps = oauth::list_apps(&web.core, user.session.user.id).await?;
    let uncertain = webhooks::teams_with_unknown_endpoints(&web.core, user.session.user.id).await?;
    let uncertain =
        uncertain.into_iter().map(|(team, name)| UncertainTeam { name, webhooks: paths::team_page(team, "webhooks") });
    let script = Some(web.assets.copy.path.clone());
    let template = AppsPage {
        layout: Layout { script, ..web.user_layout(&user.session, PATH) },
        form_token: user.session.csrf,
        mcp_url: web.core.oauth().mcp_url.clone(),
        is_disconnected: query.has("disconnected"),
        apps: apps.into_iter().map(App::from).collect(),
        uncertain: uncertain.collect(),
    };
    Ok(page(StatusCode::OK, &template))
}
