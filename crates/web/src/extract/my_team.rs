//! Pages and forms of a team itself, its people and its keys.
//!
//! They differ from those in [`super::team`]: they need the role of the user, their token is checked before the
//! membership, and a visitor is redirected back without the query, which only has notices about forms that were
//! submitted before.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use grabd_engine::accounts::UserTeam;
use http::request::Parts;

use super::limit::{FormLimit, PageLimit};
use super::rejection::Rejection;
use super::signed_in::{SignedInForm, SignedInPage};
use super::team_id::team_id;
use crate::access::Access;
use crate::form::Form;
use crate::session::SignedIn;
use crate::state::Web;

/// The user who loads a page, and the team in its path with the user's role. A visitor is redirected to the sign-in
/// page. A user who is not in the team gets 404, and a member whose role may not use the route gets 403.
pub(crate) struct MyTeamPage {
    pub(crate) user: SignedIn,
    pub(crate) team: UserTeam,
}

/// A form, the user who submitted it, and the team in its path with the user's role. It counts against the limit `L` of
/// its address.
///
/// The checks are made in this order: limit, form, session, token, membership, role.
pub(crate) struct MyTeamForm<L = PageLimit> {
    pub(crate) user: SignedIn,
    pub(crate) team: UserTeam,
    pub(crate) form: Form,
    limit: PhantomData<L>,
}

impl FromRequestParts<Arc<Web>> for MyTeamPage {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, web: &Arc<Web>) -> Result<Self, Rejection> {
        let (team, access) = (team_id(parts).await?, Access::of(&parts.extensions));
        let SignedInPage(user) = SignedInPage::from_request_parts(parts, web).await?;
        let team = web.my_team(&user.session, &team, access).await?;
        Ok(Self { user, team })
    }
}

impl<L: FormLimit> FromRequest<Arc<Web>> for MyTeamForm<L> {
    type Rejection = Rejection;

    async fn from_request(request: Request, web: &Arc<Web>) -> Result<Self, Rejection> {
        let (mut parts, body) = request.into_parts();
        let (team, access) = (team_id(&mut parts).await?, Access::of(&parts.extensions));
        let request = Request::from_parts(parts, body);
        let SignedInForm { user, form, .. } = SignedInForm::<L>::from_request(request, web).await?;
        let team = web.my_team(&user.session, &team, access).await?;
        Ok(Self { user, team, form, limit: PhantomData })
    }
}
