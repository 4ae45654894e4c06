//! Outgoing e-mail: queued, then sent through the operator's mail server. The connection does not pass the address
//! guard, since the server's address comes from the configuration and never from a caller.
//!
//! `templates` has the texts, `smtp` the transport. The queue is in memory: a message that is lost with the process has
//! to be requested again.

mod outbox;
mod queue;
mod quota;
mod send;
mod smtp;
pub(crate) mod templates;

pub(crate) use queue::{MailMessage, Mailer, QueueFull, mailer};
pub(crate) use quota::Quotas;
pub(crate) use send::run;
pub use smtp::{Error, Server, Smtp};
