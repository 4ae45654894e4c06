//! Pages and forms of visitors, who need not be signed in.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use http::HeaderMap;
use http::request::Parts;

use super::csrf::check_visit;
use super::limit::{FormLimit, PageLimit};
use crate::client_ip::ClientIp;
use crate::form::Form;
use crate::problem::Problem;
use crate::state::Web;

/// A page that a visitor loads. It counts against the limit `L` of the visitor's address.
pub(crate) struct VisitorPage<L = PageLimit> {
    pub(crate) client: ClientIp,
    pub(crate) headers: HeaderMap,
    pub(crate) query: Form,
    limit: PhantomData<L>,
}

/// A form that a visitor submits, which has the token of the visit. It counts against the limit `L` of the visitor's address.
///
/// The checks are made in this order: limit, form, token.
pub(crate) struct VisitorForm<L = PageLimit> {
    pub(crate) client: ClientIp,
    pub(crate) headers: HeaderMap,
    pub(crate) form: Form,
    limit: PhantomData<L>,
}

impl<L: FormLimit> FromRequestParts<Arc<Web>> for VisitorPage<L> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, web: &Arc<Web>) -> Result<Self, Problem> {
        let client = ClientIp::of(parts);
        L::of(&web.limits).take(client.0)?;
        let query = Form::parse(parts.uri.query().unwrap_or_default().as_bytes());
        Ok(Self { client, headers: parts.headers.clone(), query, limit: PhantomData })
    }
}

impl<L: FormLimit> FromRequest<Arc<Web>> for VisitorForm<L> {
    type Rejection = Problem;

    async fn from_request(request: Request, web: &Arc<Web>) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let client = ClientIp::of(&parts);
        L::of(&web.limits).take(client.0)?;
        let form = Form::read(&parts.headers, body).await?;
        check_visit(&web.cookies, &parts.headers, &form)?;
        Ok(Self { client, headers: parts.headers, form, limit: PhantomData })
    }
}
