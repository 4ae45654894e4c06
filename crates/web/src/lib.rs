//! The pages and the OAuth endpoints: faces for people, who sign in, and for the programs they let act for them.
//!
//! *Invariant:* no SQL and no gRPC in here. What is allowed is decided by the engine's use-cases; this crate reads forms,
//! shows pages and sends people on.
