//! Forms submitted by a signed-in user.

use axum::extract::Request;

use crate::Web;
use crate::csrf;
use crate::form::Form;
use crate::limits::Limit;
use crate::problem::Problem;
use crate::response::ClientIp;
use crate::session::SignedIn;

/// A form and the user who submitted it.
pub(crate) struct SubmittedForm {
    pub(crate) person: SignedIn,
    pub(crate) form: Form,
}

impl Web {
    /// Reads a form and checks the rate limit, the session and the CSRF token.
    ///
    /// # Errors
    /// When one of the checks fails.
    pub(crate) async fn submitted_form(
        &self,
        limit: &Limit,
        client: ClientIp,
        request: Request,
    ) -> Result<SubmittedForm, Problem> {
        limit.take(client.0)?;
        let (head, body) = request.into_parts();
        let form = Form::read(&head.headers, body).await?;
        let Some(person) = self.signed_in(&head.headers).await? else { return Err(Problem::signed_out()) };
        csrf::check(&head.headers, &form, &person.session.csrf)?;
        Ok(SubmittedForm { person, form })
    }
}
