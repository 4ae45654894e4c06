//! Pages and forms of a team's captures, webhooks and billing.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use http::request::Parts;

use super::limit::{PageLimit, take};
use super::rejection::Rejection;
use super::team_id::team_id;
use super::unchecked::UncheckedForm;
use crate::access::Access;
use crate::client_ip::ClientIp;
use crate::form::Form;
use crate::problem::Problem;
use crate::session::sign_in_url_for;
use crate::state::Web;
use crate::team::TeamContext;

/// The member of the path's team who loads a page. A visitor is redirected to the sign-in page, which redirects back. A
/// user who is not in the team gets 404, and a member whose role may not use the route gets 403.
pub(crate) struct TeamPage(pub(crate) TeamContext);

/// The member of the path's team whose page loads a part by itself, such as a thumbnail. Parts have a limit of their
/// own. A visitor gets 403, because a redirect would load the sign-in page as the part.
pub(crate) struct TeamPart(pub(crate) TeamContext);

/// A form and the member of the path's team who submitted it.
///
/// The checks are made in this order: limit, form, session, membership, role, token.
pub(crate) struct TeamForm {
    pub(crate) at: TeamContext,
    pub(crate) form: Form,
}

impl FromRequestParts<Arc<Web>> for TeamPage {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, web: &Arc<Web>) -> Result<Self, Rejection> {
        let (team, access) = (team_id(parts).await?, Access::of(&parts.extensions));
        take::<PageLimit>(web, parts).await?;
        match web.team_context(&parts.headers, &team, access).await? {
            Some(at) => Ok(Self(at)),
            None => Err(Rejection::SignIn(sign_in_url_for(&parts.uri))),
        }
    }
}

impl FromRequestParts<Arc<Web>> for TeamPart {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, web: &Arc<Web>) -> Result<Self, Rejection> {
        let (team, access) = (team_id(parts).await?, Access::of(&parts.extensions));
        web.limits.parts.take(ClientIp::of(parts).0).map_err(Problem::from)?;
        let at = web.team_context(&parts.headers, &team, access).await?;
        Ok(Self(at.ok_or_else(Problem::signed_out)?))
    }
}

impl FromRequest<Arc<Web>> for TeamForm {
    type Rejection = Rejection;

    async fn from_request(request: Request, web: &Arc<Web>) -> Result<Self, Rejection> {
        let (mut parts, body) = request.into_parts();
        let (team, access) = (team_id(&mut parts).await?, Access::of(&parts.extensions));
        take::<PageLimit>(web, &parts).await?;
        let sent = UncheckedForm::read_body(parts.headers, body).await.map_err(Problem::from)?;
        let at = web.team_context(sent.headers(), &team, access).await?.ok_or_else(Problem::signed_out)?;
        let form = sent.into_checked(&at.signed_in.session)?;
        Ok(Self { at, form })
    }
}
