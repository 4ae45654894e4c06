//! Limits that strangers, or one customer, could use up for everybody else.

mod addresses;
mod archives;
mod bodies;
mod links;
mod passwords;
mod registrations;
mod scopes;

use anyhow::Result;
use grabd_tests::harness::TestApp;

/// Lets tests choose the address of a client with the header [`FORWARDED`].
const TRUSTED: (&str, &str) = ("http.trusted_proxies", "127.0.0.1/32");
const FORWARDED: &str = "x-forwarded-for";
const FORM: &str = "application/x-www-form-urlencoded";

/// Sends a request without a credential from an address, and returns its status.
async fn status_of(app: &TestApp, address: &str, path: &str) -> Result<u16> {
    let request = app.client.get(format!("{}{path}", app.service.public_url()));
    Ok(request.header(FORWARDED, address).send().await?.status().as_u16())
}
