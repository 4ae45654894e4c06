//! A DevTools protocol client over the browser's pipe.
//!
//! Commands are chromiumoxide's types. The transport is our own: a pipe has no port that another user could connect to.
//! A single reader handles events in the order of arrival, so every event before a response has been seen when the
//! response is returned. Events are parsed into narrow types ([`Event`]), which ignore values of newer browsers.

mod client;
mod event;
mod head;
mod robots_tag;

pub(crate) use client::{CallError, Client, RawResult, Sink};
pub(crate) use event::{Event, Kind, PausedRequest};
pub(crate) use head::{Head, RequestDetails, ResponseDetails, SecurityDetails};
