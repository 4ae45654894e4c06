//! OAuth consents, codes and tokens.

mod exchange;
mod monitors;
mod purge;
mod races;
mod refresh;
mod revoke;
mod test_app;
mod webhooks;
