//! Page responses: the layout around a template, and the Content-Security-Policy.

use askama::Template;
use axum::response::{IntoResponse, Response};
use grabd_domain::contact_link::{ContactLink, ServiceLinks};
use grabd_engine::Core;
use grabd_engine::accounts::Session;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};

use crate::assets::Assets;
use crate::number::grouped;
use crate::paths;
use crate::state::Web;

/// The pages of the user, whatever the team: path and label.
const ACCOUNT_TABS: [(&str, &str); 3] =
    [(paths::ACCOUNT, "Account"), (paths::TEAMS, "Teams"), (paths::APPS, "Connected apps")];

/// The data of the layout around the content of each page.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Path of the style sheet.
    pub(crate) style: String,
    /// Path of the font.
    pub(crate) font: String,
    /// Path of the icon.
    pub(crate) icon: String,
    /// Path of the script of all pages.
    pub(crate) site: String,
    /// Path of the page's own script, if it has one.
    pub(crate) script: Option<String>,
    /// The path that the header marks as current.
    pub(crate) here: &'static str,
    /// The signed-in user. `None` hides the navigation.
    pub(crate) user: Option<User>,
    /// Whether the header offers visitors to sign in. Pages that are a step of a flow do not.
    pub(crate) is_open: bool,
    /// The team of the page, for the menu of teams.
    pub(crate) team: Option<TeamNavigation>,
    /// The tabs below the header.
    pub(crate) tabs: Option<Tabs>,
    /// The link for owners of captured sites. Empty if the operator has configured none.
    pub(crate) abuse_contact: String,
    /// Whom users can write to. Empty if the operator has configured nobody.
    pub(crate) support: String,
    /// Labels and targets of the links about the service.
    pub(crate) service: Vec<(&'static str, String)>,
}

/// The signed-in user, for the page header.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) email: String,
    pub(crate) form_token: String,
    /// Whether the navigation links to the operator pages.
    pub(crate) is_operator: bool,
    /// Whether the banner for unverified e-mail addresses is shown.
    pub(crate) is_unverified: bool,
    /// What the user gets for verifying the address. Empty if the operator grants nothing.
    pub(crate) reward: String,
}

/// The team of a page, for the menu of teams.
#[derive(Debug)]
pub(crate) struct TeamNavigation {
    pub(crate) name: String,
    /// The user's other teams: path and name.
    pub(crate) others: Vec<(String, String)>,
}

/// Pages that belong together.
#[derive(Debug)]
pub(crate) struct Tabs {
    /// What they belong to.
    pub(crate) label: String,
    pub(crate) links: Vec<Tab>,
}

/// A link to one of these pages.
#[derive(Debug)]
pub(crate) struct Tab {
    pub(crate) path: String,
    pub(crate) label: &'static str,
    pub(crate) is_here: bool,
}

/// Whether a path is one of the pages of the account.
fn is_of_account(here: &str) -> bool {
    ACCOUNT_TABS.iter().any(|(path, _)| *path == here)
}

impl Layout {
    /// Whether the tabs are those of the account.
    pub(crate) fn is_of_account(&self) -> bool {
        is_of_account(self.here)
    }

    /// The target of the link about the service with this label. Empty if there is none.
    pub(crate) fn service_link(&self, label: &str) -> &str {
        self.service.iter().find(|(own, _)| *own == label).map_or("", |(_, href)| href)
    }

    /// The layout without navigation for signed-in users.
    pub(crate) fn plain(assets: &Assets, core: &Core) -> Self {
        let href = |link: Option<&ContactLink>| link.map(|link| link.href().to_owned()).unwrap_or_default();
        let ServiceLinks { support, terms, privacy, imprint, status } = core.service_links();
        let service =
            [("Support", support), ("Terms", terms), ("Privacy", privacy), ("Imprint", imprint), ("Status", status)];
        Self {
            style: assets.style.path.clone(),
            font: assets.font.path.clone(),
            icon: assets.icon.path.clone(),
            site: assets.site.path.clone(),
            script: None,
            here: "",
            user: None,
            is_open: false,
            team: None,
            tabs: None,
            abuse_contact: href(core.abuse_contact()),
            support: href(support.as_ref()),
            service: service
                .into_iter()
                .filter_map(|(label, link)| Some((label, href(Some(link.as_ref()?)))))
                .collect(),
        }
    }
}

impl Web {
    /// The captures that a new user gets with a verified address, such as "50 free captures". Empty if there are none.
    pub(crate) fn trial_captures(&self) -> String {
        match self.core.trial_credits() {
            0 => String::new(),
            1 => "1 free capture".to_owned(),
            credits => format!("{} free captures", grouped(credits.into())),
        }
    }

    /// A layout without navigation, for pages that are a step of a flow.
    pub(crate) fn plain_layout(&self) -> Layout {
        Layout::plain(&self.assets, &self.core)
    }

    /// The layout of pages that visitors read without being asked to sign in.
    pub(crate) fn visitor_layout(&self, here: &'static str) -> Layout {
        Layout { here, is_open: true, ..self.plain_layout() }
    }

    /// A layout with the navigation of the signed-in user. The pages of the account have tabs.
    pub(crate) fn user_layout(&self, session: &Session, here: &'static str) -> Layout {
        let user = User {
            email: session.user.email.to_string(),
            form_token: session.csrf.clone(),
            is_operator: session.user.operator,
            is_unverified: !session.user.verified,
            reward: self.trial_captures(),
        };
        let tab = |(path, label): (&str, _)| Tab { path: path.to_owned(), label, is_here: path == here };
        let tabs = is_of_account(here)
            .then(|| Tabs { label: "Account".to_owned(), links: ACCOUNT_TABS.into_iter().map(tab).collect() });
        Layout { here, user: Some(user), tabs, ..self.plain_layout() }
    }
}

/// What the Content-Security-Policy of a page allows in addition to our own style sheet, scripts and images.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CspOptions<'a> {
    /// The redirect target of a form: an origin, or a scheme with its colon. Browsers apply `form-action` to all
    /// redirects after a form submission, so the target must be listed.
    pub(crate) form_target: &'a str,
    /// Connections of our own scripts to this origin.
    pub(crate) connects: bool,
    /// Images in `data:` URLs.
    pub(crate) data_images: bool,
}

/// Renders a page whose forms stay on this site.
pub(crate) fn page<T: Template>(status: StatusCode, template: &T) -> Response {
    page_with(CspOptions::default(), status, template)
}

/// Renders a page with a form that redirects to `target`.
pub(crate) fn page_with_form_target<T: Template>(target: &str, status: StatusCode, template: &T) -> Response {
    page_with(CspOptions { form_target: target, ..CspOptions::default() }, status, template)
}

/// Renders a page with these options.
pub(crate) fn page_with<T: Template>(csp: CspOptions<'_>, status: StatusCode, template: &T) -> Response {
    match template.render() {
        Ok(html) => {
            let headers = [
                (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
                (CONTENT_SECURITY_POLICY, csp_header(csp)),
            ];
            (status, headers, html).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "failed to render a page");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// The Content-Security-Policy: only our own style sheet, scripts and images plus the options, and no framing.
pub(crate) fn csp_header(csp: CspOptions<'_>) -> HeaderValue {
    let CspOptions { form_target: target, connects, data_images } = csp;
    let is_source = target.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b';' | b',' | b'\'' | b'*'));
    let space = if target.is_empty() || !is_source { "" } else { " " };
    let target = if is_source { target } else { "" };
    let images = if data_images { " data:" } else { "" };
    let connections = if connects { "; connect-src 'self'" } else { "" };
    let policy = format!(
        "default-src 'none'; style-src 'self'; font-src 'self'; script-src 'self'; img-src 'self'{images}{connections}; \
         form-action 'self'{space}{target}; frame-ancestors 'none'; base-uri 'none'"
    );
    HeaderValue::try_from(policy).expect("sources are visible ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_lists_at_most_one_form_target() {
        for (target, action) in [
            ("", "'self'"),
            ("https://claude.ai", "'self' https://claude.ai"),
            ("http://127.0.0.1:4711", "'self' http://127.0.0.1:4711"),
            ("cursor:", "'self' cursor:"),
            ("https://a.example; script-src *", "'self'"),
            ("https://a.example https://b.example", "'self'"),
            ("*", "'self'"),
            ("https://\u{e4}.example", "'self'"),
        ] {
            let policy = csp_header(CspOptions { form_target: target, ..CspOptions::default() });
            let expected = format!("; form-action {action}; frame-ancestors 'none'; base-uri 'none'");
            assert!(policy.to_str().unwrap().ends_with(&expected), "{policy:?}");
        }
    }

    #[test]
    fn policy_allows_connections_and_data_images_only_on_request() {
        let plain = csp_header(CspOptions::default());
        let plain = plain.to_str().unwrap();
        assert!(
            plain.starts_with(
                "default-src 'none'; style-src 'self'; font-src 'self'; script-src 'self'; img-src 'self'; form-action"
            ),
            "{plain}"
        );
        let live = csp_header(CspOptions { connects: true, ..CspOptions::default() });
        assert!(live.to_str().unwrap().contains("; img-src 'self'; connect-src 'self'; form-action"), "{live:?}");
        let drawn = csp_header(CspOptions { data_images: true, ..CspOptions::default() });
        assert!(drawn.to_str().unwrap().contains("; img-src 'self' data:; form-action"), "{drawn:?}");
    }
}
