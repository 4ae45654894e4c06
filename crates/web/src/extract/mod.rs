//! The arguments of handlers: the signed-in user, one of their teams, and forms whose token was checked.
//!
//! A handler that takes one of these types runs only after its checks. The check of a signed-in user's form is private
//! to this module, so that a handler cannot forget it. Where the token depends on the content of a form, the handler
//! reads an [`UncheckedForm`].

mod csrf;
mod limit;
mod my_team;
mod operator;
mod query;
mod rejection;
mod signed_in;
mod team;
mod team_id;
mod unchecked;
mod visitor;

pub(crate) use csrf::{Visit, check_visit};
pub(crate) use limit::{LinkLimit, MailLimit, PasswordLimit, SignUpLimit, TrialLimit, take_page};
pub(crate) use my_team::{MyTeamForm, MyTeamPage};
pub(crate) use operator::{OperatorContext, OperatorForm, unknown_page};
pub(crate) use query::QueryForm;
pub(crate) use signed_in::{SignedInForm, SignedInPage};
pub(crate) use team::{TeamForm, TeamPage, TeamPart};
pub(crate) use unchecked::UncheckedForm;
pub(crate) use visitor::{VisitorForm, VisitorPage};
