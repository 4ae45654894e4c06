//! Pages and forms of signed-in users that belong to no team.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use http::request::Parts;

use super::limit::{FormLimit, PageLimit, take};
use super::rejection::Rejection;
use super::unchecked::UncheckedForm;
use crate::form::Form;
use crate::problem::Problem;
use crate::session::{SignedIn, sign_in_url};
use crate::state::Web;

/// The user who loads a page. A visitor is redirected to the sign-in page, which redirects back to the page without its
/// query: that only has notices about forms that were submitted before.
pub(crate) struct SignedInPage(pub(crate) SignedIn);

/// A form and the user who submitted it. It counts against the limit `L` of its address, or of
/// the user if others have used that up.
///
/// The checks are made in this order: limit, form, session, token, changes of this user today.
pub(crate) struct SignedInForm<L = PageLimit> {
    pub(crate) user: SignedIn,
    pub(crate) form: Form,
    limit: PhantomData<L>,
}

impl FromRequestParts<Arc<Web>> for SignedInPage {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, web: &Arc<Web>) -> Result<Self, Rejection> {
        take::<PageLimit>(web, parts).await?;
        match web.signed_in(&parts.headers).await? {
            Some(user) => Ok(Self(user)),
            None => Err(Rejection::SignIn(sign_in_url(parts.uri.path()))),
        }
    }
}

impl<L: FormLimit> FromRequest<Arc<Web>> for SignedInForm<L> {
    type Rejection = Problem;

    async fn from_request(request: Request, web: &Arc<Web>) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        take::<L>(web, &parts).await?;
        let sent = UncheckedForm::read_body(parts.headers, body).await?;
        let Some(user) = web.signed_in(sent.headers()).await? else { return Err(Problem::signed_out()) };
        let form = sent.into_checked(&user.session)?;
        web.limits.changes.take(user.session.user.id).map_err(Problem::too_many_changes)?;
        Ok(Self { user, form, limit: PhantomData })
    }
}
