//! The teams of a user: one file per page, or per form without a page of its own.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod export;
pub(crate) mod invite;
pub(crate) mod leave;
pub(crate) mod list;
pub(crate) mod members;
pub(crate) mod rename;
pub(crate) mod secrets;
pub(crate) mod settings;
pub(crate) mod trail;
pub(crate) mod users;
