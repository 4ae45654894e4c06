//! The body of error responses.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The body of every error response. The contract allows no further members.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ErrorBody<'a> {
    /// What went wrong.
    pub error: ErrorMembers<'a>,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorMembers<'a> {
    /// The error code: stable, for programs.
    pub code: Cow<'a, str>,
    /// The message, for people.
    pub message: Cow<'a, str>,
}
