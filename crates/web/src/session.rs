//! The session of a request.

use grabd_domain::credentials::SessionToken;
use grabd_engine::accounts::{self, Session};
use http::{HeaderMap, Uri};

use crate::cookies::Cookie;
use crate::form::Form;
use crate::paths::SIGN_IN;
use crate::problem::Problem;
use crate::state::Web;

/// The session of a signed-in user, and its token.
pub(crate) struct SignedIn {
    pub(crate) token: SessionToken,
    pub(crate) session: Session,
}

impl Web {
    /// The session of the request's cookie.
    ///
    /// # Errors
    /// When the lookup fails.
    pub(crate) async fn signed_in(&self, headers: &HeaderMap) -> Result<Option<SignedIn>, Problem> {
        let Some(token) = self.cookies.get(Cookie::Session, headers).and_then(SessionToken::parse) else {
            return Ok(None);
        };
        let session = accounts::find_session(&self.core, &token).await?;
        Ok(session.map(|session| SignedIn { token, session }))
    }
}

/// The URL of the sign-in page with a redirect to `path`.
pub(crate) fn sign_in_url(path: &str) -> String {
    let next = Form::from_iter([("next", path)]).to_query();
    format!("{SIGN_IN}?{next}")
}

/// The URL of the sign-in page with a redirect to the requested page.
pub(crate) fn sign_in_url_for(uri: &Uri) -> String {
    sign_in_url(uri.path_and_query().map_or("/", |path| path.as_str()))
}
