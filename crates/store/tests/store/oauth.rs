//! OAuth consents, codes and tokens.

mod exchange;
mod monitors;
mod proxies;
mod purge;
mod races;
mod refresh;
mod revoke;
mod test_app;
mod webhooks;
