//! One file for each table. Private: what leaves the crate are domain types.

pub(crate) mod api_key;
pub(crate) mod delivery;
pub(crate) mod grab;
pub(crate) mod idem;
pub(crate) mod image_gc;
pub(crate) mod invitation;
pub(crate) mod job;
pub(crate) mod ledger;
pub(crate) mod lot;
pub(crate) mod member;
pub(crate) mod oauth_client;
pub(crate) mod oauth_code;
pub(crate) mod oauth_grant;
pub(crate) mod oauth_ticket;
pub(crate) mod oauth_token;
pub(crate) mod password_reset;
pub(crate) mod session;
pub(crate) mod team;
pub(crate) mod user;
pub(crate) mod webhook_endpoint;
