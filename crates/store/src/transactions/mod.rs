//! Every change, one file each. The letters are those of a grab's steps:
//!
//! | step | from, to | file |
//! |---|---|---|
//! | T0 | a placeholder is born ended | `placeholder.rs` |
//! | T1 | created, pending or at once processing | `create.rs` |
//! | T2 | pending to processing | `lease.rs` |
//! | T3 | processing to done | `complete.rs` |
//! | T4 | processing to failed | `fail.rs` |
//! | T5 | processing back to pending | `release.rs`, and for those of the dead `rescue.rs` |
//! | T6 | open to failed, the deadline is over | `fail.rs`, and for all of them `expire_jobs.rs` |
//! | T7 | open to failed, its caller takes it back | `fail.rs` |

pub(crate) mod accounts;
pub(crate) mod cancel;
pub(crate) mod complete;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod expire_jobs;
pub(crate) mod expire_lots;
pub(crate) mod fail;
pub(crate) mod grant;
pub(crate) mod idempotency;
pub(crate) mod images;
pub(crate) mod lease;
pub(crate) mod oauth;
pub(crate) mod operators;
pub(crate) mod passwords;
pub(crate) mod people;
pub(crate) mod placeholder;
pub(crate) mod release;
pub(crate) mod rescue;
pub(crate) mod take_back;
pub(crate) mod teams;
pub(crate) mod webhooks;
