//! Loads the page: navigates, answers its requests, and waits until it has settled.

pub(super) mod clock;
pub(super) mod frame_drawing;
pub(super) mod intercept;
pub(super) mod navigate;
pub(super) mod outside;
mod pdf_tables;
pub(super) mod pdf_target;
pub(super) mod settle;
mod stuck;
pub(super) mod through_proxy;
pub(super) mod watch;
pub(super) mod workers;
