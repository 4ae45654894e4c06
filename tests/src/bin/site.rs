//! Serves the fixture site until it is interrupted, for trying the service by hand without a network.
//!
//! `cargo run -p grabd-tests --bin site`, then `GRABD_EGRESS__ALLOW_CIDRS=127.0.0.2/32,127.0.0.4/32 script/run URL`.

use std::net::{IpAddr, Ipv4Addr};

use grabd_tests::hard::Page;
use grabd_tests::harness::ALLOWED;
use grabd_tests::site::Site;
use grabd_tests::site::hard::directory;

/// A second address of the same site, which a browser treats as another site.
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 4));

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let site = Site::start_pair(ALLOWED, OTHER).await?;
    for path in ["/showcase", "/article", "/tall", "/heavy", "/tiny"] {
        println!("{}", site.url(path));
    }
    for page in Page::all(&directory(), "/hard/")? {
        println!("{}", site.url(&page.path));
    }
    tokio::signal::ctrl_c().await?;
    Ok(())
}
