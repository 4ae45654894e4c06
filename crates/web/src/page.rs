//! A page as it is answered: a template in its frame, and what a browser may do with it.

use askama::Template;
use axum::response::{IntoResponse, Response};
use grabd_engine::accounts::Session;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};

use crate::Web;

/// What stands around the content of every page.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Where the style sheet is.
    pub(crate) style: String,
    /// Where the icon is.
    pub(crate) icon: String,
    /// Where the script is that keeps the page up to date; most pages have none.
    pub(crate) script: Option<String>,
    /// The path that the navigation shows as the current one.
    pub(crate) here: &'static str,
    /// Whose navigation it is; none without.
    pub(crate) person: Option<Person>,
    /// The team whose pages the navigation leads to.
    pub(crate) team: Option<TeamNavigation>,
}

/// Who is signed in, for the head of the page.
#[derive(Debug)]
pub(crate) struct Person {
    pub(crate) email: String,
    pub(crate) form_token: String,
    /// Do they see how the whole service is?
    pub(crate) is_operator: bool,
}

/// The pages of one team, for the head of the page.
#[derive(Debug)]
pub(crate) struct TeamNavigation {
    pub(crate) name: String,
    pub(crate) links: Vec<TeamLink>,
    /// The person's other teams: a path and a name.
    pub(crate) others: Vec<(String, String)>,
}

/// One page of a team.
#[derive(Debug)]
pub(crate) struct TeamLink {
    pub(crate) path: String,
    pub(crate) label: &'static str,
    pub(crate) is_here: bool,
}

impl Web {
    /// A frame without navigation, for pages that are one step on a way.
    pub(crate) fn plain_frame(&self) -> Frame {
        Frame {
            style: self.assets.style.path.clone(),
            icon: self.assets.icon.path.clone(),
            script: None,
            here: "",
            person: None,
            team: None,
        }
    }

    /// A frame with the navigation of who is signed in.
    pub(crate) fn frame_of(&self, session: &Session, here: &'static str) -> Frame {
        let person = Person {
            email: session.person.email.to_string(),
            form_token: session.csrf.clone(),
            is_operator: session.person.operator,
        };
        Frame { here, person: Some(person), ..self.plain_frame() }
    }
}

/// What a page may do beyond showing itself with our own style sheet and pictures.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rights<'a> {
    /// Where a form's answer sends the browser on to: an origin, or a scheme with its colon. Browsers hold `form-action`
    /// against every step that follows a form, so without it they would not let the person leave.
    pub(crate) leads_to: &'a str,
    /// Run our own script, which may ask us for news.
    pub(crate) script: bool,
    /// Show a picture that is written in the page itself.
    pub(crate) picture_within: bool,
}

/// The page. Its forms lead to ourselves alone.
pub(crate) fn page<T: Template>(status: StatusCode, template: &T) -> Response {
    page_with(Rights::default(), status, template)
}

/// A page with a form whose answer sends the browser on to `target`.
pub(crate) fn page_leading_to<T: Template>(target: &str, status: StatusCode, template: &T) -> Response {
    page_with(Rights { leads_to: target, ..Rights::default() }, status, template)
}

/// A page with these rights.
pub(crate) fn page_with<T: Template>(rights: Rights<'_>, status: StatusCode, template: &T) -> Response {
    match template.render() {
        Ok(html) => {
            let headers = [
                (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
                (CONTENT_SECURITY_POLICY, policy(rights)),
            ];
            (status, headers, html).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "a page could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Nothing but our own style sheet and pictures and what the rights add, in nobody's frame.
pub(crate) fn policy(rights: Rights<'_>) -> HeaderValue {
    let Rights { leads_to: target, script, picture_within } = rights;
    let is_source = target.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b';' | b',' | b'\'' | b'*'));
    let space = if target.is_empty() || !is_source { "" } else { " " };
    let target = if is_source { target } else { "" };
    let images = if picture_within { " data:" } else { "" };
    let scripts = if script { "; script-src 'self'; connect-src 'self'" } else { "" };
    let policy = format!(
        "default-src 'none'; style-src 'self'; img-src 'self'{images}{scripts}; form-action 'self'{space}{target}; \
         frame-ancestors 'none'; base-uri 'none'"
    );
    HeaderValue::try_from(policy).expect("sources are visible ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_names_one_target_at_most() {
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
            let policy = policy(Rights { leads_to: target, ..Rights::default() });
            let expected = format!("; form-action {action}; frame-ancestors 'none'; base-uri 'none'");
            assert!(policy.to_str().unwrap().ends_with(&expected), "{policy:?}");
        }
    }

    #[test]
    fn scripts_and_pictures_come_from_us_and_nothing_is_written_inline() {
        let plain = policy(Rights::default());
        let plain = plain.to_str().unwrap();
        assert!(plain.starts_with("default-src 'none'; style-src 'self'; img-src 'self'; form-action"), "{plain}");
        let live = policy(Rights { script: true, ..Rights::default() });
        assert!(live.to_str().unwrap().contains("; script-src 'self'; connect-src 'self'; form-action"), "{live:?}");
        let drawn = policy(Rights { picture_within: true, ..Rights::default() });
        assert!(drawn.to_str().unwrap().contains("; img-src 'self' data:; form-action"), "{drawn:?}");
    }
}
