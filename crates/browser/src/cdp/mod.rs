//! The DevTools protocol over the browser's own pipe.
//!
//! Commands are chromiumoxide's types. The transport is ours: a pipe has no port another user could reach, and its one
//! reader folds events in the order the browser sent them, so that after an answer everything before it has been seen.
//! Events are read as narrow views of our own ([`Event`]): a newer browser's unknown words then cost nothing.

mod client;
mod event;

pub(crate) use client::{CallError, Client, Sink};
pub(crate) use event::{Event, Head, Kind};
