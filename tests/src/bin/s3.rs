//! Runs an S3 server with an empty bucket until it is interrupted, for trying the service with an object store by hand.
//! Prints the settings of the service.

use grabd_tests::s3_server::S3Server;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = S3Server::start().await?;
    for (key, value) in server.settings() {
        println!("export GRABD_{}='{value}'", key.replace('.', "__").to_uppercase());
    }
    tokio::signal::ctrl_c().await?;
    for name in server.objects()? {
        println!("left: {name}");
    }
    Ok(())
}
