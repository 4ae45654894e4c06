//! Who is signed in.

use grabd_domain::credentials::SessionToken;
use grabd_engine::accounts::{self, Session};
use http::{HeaderMap, Uri};

use crate::Web;
use crate::accounts::SIGN_IN;
use crate::cookies::Cookie;
use crate::form::Form;
use crate::problem::Problem;

/// Somebody's session, and the token that opened it.
pub(crate) struct SignedIn {
    pub(crate) token: SessionToken,
    pub(crate) session: Session,
}

impl Web {
    /// The session that the request's cookie opens.
    ///
    /// # Errors
    /// When it cannot be looked up.
    pub(crate) async fn signed_in(&self, headers: &HeaderMap) -> Result<Option<SignedIn>, Problem> {
        let Some(token) = self.cookies.get(Cookie::Session, headers).and_then(SessionToken::parse) else {
            return Ok(None);
        };
        let session = accounts::find_session(&self.core, &token).await?;
        Ok(session.map(|session| SignedIn { token, session }))
    }
}

/// Where to sign in before going on to `path`.
pub(crate) fn sign_in_first(path: &str) -> String {
    let next = Form::from_iter([("next", path)]).to_query();
    format!("{SIGN_IN}?{next}")
}

/// The same for the page that was asked for.
pub(crate) fn sign_in_first_at(uri: &Uri) -> String {
    sign_in_first(uri.path_and_query().map_or("/", |path| path.as_str()))
}
