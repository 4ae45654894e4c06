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
    /// The path that the navigation shows as the current one.
    pub(crate) here: &'static str,
    /// Whose navigation it is; none without.
    pub(crate) person: Option<Person>,
}

/// Who is signed in, for the head of the page.
#[derive(Debug)]
pub(crate) struct Person {
    pub(crate) email: String,
    pub(crate) form_token: String,
}

impl Web {
    /// A frame without navigation, for pages that are one step on a way.
    pub(crate) fn plain_frame(&self) -> Frame {
        Frame { style: self.assets.style.path.clone(), icon: self.assets.icon.path.clone(), here: "", person: None }
    }

    /// A frame with the navigation of who is signed in.
    pub(crate) fn frame_of(&self, session: &Session, here: &'static str) -> Frame {
        let person = Person { email: session.person.email.to_string(), form_token: session.csrf.clone() };
        Frame { here, person: Some(person), ..self.plain_frame() }
    }
}

/// The page. Its forms lead to ourselves alone.
pub(crate) fn page<T: Template>(status: StatusCode, template: &T) -> Response {
    page_leading_to("", status, template)
}

/// A page with a form whose answer sends the browser on to `target`, an origin or a scheme with its colon. Browsers hold
/// `form-action` against every step that follows a form, so without it they would not let the person leave.
pub(crate) fn page_leading_to<T: Template>(target: &str, status: StatusCode, template: &T) -> Response {
    match template.render() {
        Ok(html) => {
            let headers = [
                (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
                (CONTENT_SECURITY_POLICY, policy(target)),
            ];
            (status, headers, html).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "a page could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Nothing but our own style sheet and icon, in nobody's frame.
pub(crate) fn policy(target: &str) -> HeaderValue {
    let is_source = target.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b';' | b',' | b'\'' | b'*'));
    let space = if target.is_empty() || !is_source { "" } else { " " };
    let target = if is_source { target } else { "" };
    let policy = format!(
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'{space}{target}; \
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
            let policy = policy(target);
            let expected = format!("; form-action {action}; frame-ancestors 'none'; base-uri 'none'");
            assert!(policy.to_str().unwrap().ends_with(&expected), "{policy:?}");
        }
    }
}
