//! The program as its users run it: beside a real service with a real browser, on the public contract alone.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it stands")]

mod limits;
mod login;
mod many;
mod one;
mod rig;
mod webhooks;
