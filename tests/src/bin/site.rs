//! Serves the fixture site until it is stopped, for trying the service by hand on a machine without a network.
//!
//! `cargo run -p grabd-tests --bin site`, then `GRABD_EGRESS__ALLOW_CIDRS=127.0.0.2/32 script/run URL`.

use grabd_tests::harness::ALLOWED;
use grabd_tests::site::Site;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let site = Site::start(ALLOWED).await?;
    for path in ["/showcase", "/article", "/tall", "/heavy", "/tiny"] {
        println!("{}", site.url(path));
    }
    tokio::signal::ctrl_c().await?;
    Ok(())
}
