//! Why an extractor rejects a request.

use axum::extract::rejection::PathRejection;
use axum::response::{IntoResponse, Response};

use crate::problem::Problem;
use crate::response::see_other;

/// The reason, as a response.
pub(crate) enum Rejection {
    /// The path is not UTF-8.
    Path(PathRejection),
    /// The page needs a session. Contains the URL of the sign-in page, which redirects back.
    SignIn(String),
    /// All other reasons.
    Problem(Problem),
}

impl From<PathRejection> for Rejection {
    fn from(rejection: PathRejection) -> Self {
        Self::Path(rejection)
    }
}

impl From<Problem> for Rejection {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        match self {
            Self::Path(rejection) => rejection.into_response(),
            Self::SignIn(url) => see_other(&url),
            Self::Problem(problem) => problem.into_response(),
        }
    }
}
