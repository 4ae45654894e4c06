//! A form that somebody signed in has sent from a page of ours.

use axum::extract::Request;

use crate::Web;
use crate::forgery;
use crate::form::Form;
use crate::frame::Client;
use crate::limits::Limit;
use crate::problem::Problem;
use crate::session::SignedIn;

/// Who sent it, and what.
pub(crate) struct Sent {
    pub(crate) person: SignedIn,
    pub(crate) form: Form,
}

impl Web {
    /// The form of a request, when it may count: it is within the limit, its sender is signed in, and it came from here.
    ///
    /// # Errors
    /// When it may not.
    pub(crate) async fn sent(&self, limit: &Limit, client: Client, request: Request) -> Result<Sent, Problem> {
        limit.take(client.0)?;
        let (head, body) = request.into_parts();
        let form = Form::read(&head.headers, body).await?;
        let Some(person) = self.signed_in(&head.headers).await? else { return Err(Problem::signed_out()) };
        forgery::check(&head.headers, &form, &person.session.csrf)?;
        Ok(Sent { person, form })
    }
}
