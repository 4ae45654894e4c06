//! The operator of a request, and the middleware that requires one.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use grabd_engine::operator::{Operator, OperatorAccess};

use super::navigation::{PATH, tabs};
use crate::client_ip::ClientIp;
pub(super) use crate::extract::unknown_page as unknown;
use crate::extract::{OperatorContext, take_page};
use crate::page::Layout;
use crate::paths::SECOND_FACTOR;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// Middleware that rejects everybody but operators. Operators who need a second factor are redirected to its page.
pub(super) async fn require_operator(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    take_page(&web, client, request.headers()).await?;
    let Some(user) = web.signed_in(request.headers()).await? else { return Err(unknown()) };
    let operator = match Operator::from_session(&web.core, &user.session).await? {
        OperatorAccess::Granted(operator) => operator,
        OperatorAccess::SecondFactorNeeded => return Ok(see_other(&format!("{SECOND_FACTOR}?required"))),
        OperatorAccess::Denied => return Err(unknown()),
    };
    request.extensions_mut().insert(OperatorContext { operator, session: user.session });
    Ok(next.run(request).await)
}

impl OperatorContext {
    /// The layout of these pages. `here` is the path of the current page or of its parent.
    pub(super) fn layout(&self, web: &Web, here: &str) -> Layout {
        Layout { tabs: Some(tabs(here)), ..web.user_layout(&self.session, PATH) }
    }
}
