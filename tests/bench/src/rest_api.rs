//! The cost of the REST API over a bare axum handler that returns a fixed text.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

use crate::measure::Sample;
use crate::service::Service;

/// About as long as a grab in JSON.
const RESPONSE: &str = r#"{"id":"01993e1c-7b1a-7000-8000-0123456789ab","status":"done","created_at":"2026-11-20T20:31:53.488Z","target_url":"https://example.com/","image_url":"/i/AB/CD/ABCDEFGHIJKLMNOPQRSTUV.png","width":1280,"height":720,"format":"png","bytes":48213,"execution_ms":5,"error_message":null}"#;

/// Requests per kind at concurrency 1.
const REQUESTS: usize = 2_000;
/// Clients in a throughput round.
const CLIENTS: usize = 16;
/// Duration of a throughput round.
const ROUND: Duration = Duration::from_secs(3);

/// Serves the bare handler until the parent process kills it.
pub(crate) async fn serve_bare() -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    std::io::stdout().flush()?;
    let router = Router::new().route("/", get(|| async { ([(CONTENT_TYPE, "application/json")], RESPONSE) }));
    axum::serve(listener, router).await?;
    Ok(())
}

/// Measures and prints the comparison, with another version of the service if there is one.
pub(crate) async fn measure(service: &Service, before: Option<&Service>) -> anyhow::Result<()> {
    let mut bare = Command::new(std::env::current_exe()?).arg("bare-axum").stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(bare.stdout.take().context("stdout")?).read_line(&mut line)?;
    let url = format!("http://{}/", line.trim());
    let client = grabd_tests::client::client().build()?;
    let bare_get = || async {
        client.get(&url).send().await?.bytes().await?;
        Ok::<_, anyhow::Error>(())
    };
    println!(
        "\nREST API against a bare axum handler ({REQUESTS} requests at concurrency 1, interleaved; {CLIENTS} clients)"
    );
    println!("{:<30}{:>10}{:>10}{:>8}{:>12}{:>8}", "", "p50 ms", "p99 ms", "ratio", "requests/s", "ratio");
    let mut floor = None;
    for (version, service) in [("", Some(service)), (", before", before)] {
        let Some(service) = service else { continue };
        let id = service.placeholder().await?["id"].as_str().context("an id")?.to_owned();
        let get = || async { service.get(&id).await };
        let create = || async { service.placeholder().await.map(drop) };
        let mut samples = [Sample::default(), Sample::default(), Sample::default()];
        for _ in 0..REQUESTS {
            samples[0].add(timed(&bare_get).await?);
            samples[1].add(timed(&get).await?);
            samples[2].add(timed(&create).await?);
        }
        let rates = [rate(&bare_get).await?, rate(&get).await?, rate(&create).await?];
        let floor = *floor.get_or_insert((samples[0].quantile(0.5), rates[0]));
        let kinds = ["bare axum handler", "GET /v1/grabs/{id}", "POST with a test key"];
        for ((kind, sample), rate) in kinds.iter().zip(&mut samples).zip(rates) {
            let (name, median, tail) = (format!("{kind}{version}"), sample.quantile(0.5), sample.quantile(0.99));
            println!(
                "{name:<30}{median:>10.3}{tail:>10.3}{:>8.2}{rate:>12.0}{:>8.2}",
                median / floor.0,
                rate / floor.1
            );
        }
    }
    bare.kill()?;
    bare.wait()?;
    Ok(())
}

async fn timed<F: Future<Output = anyhow::Result<()>>>(request: impl Fn() -> F) -> anyhow::Result<Duration> {
    let began = Instant::now();
    request().await?;
    Ok(began.elapsed())
}

async fn rate<F: Future<Output = anyhow::Result<()>>>(request: impl Fn() -> F) -> anyhow::Result<f64> {
    let began = Instant::now();
    let clients = (0..CLIENTS).map(|_| async {
        let mut done = 0_u32;
        while began.elapsed() < ROUND {
            request().await?;
            done += 1;
        }
        Ok::<_, anyhow::Error>(done)
    });
    let done: u32 = futures::future::try_join_all(clients).await?.iter().sum();
    Ok(f64::from(done) / began.elapsed().as_secs_f64())
}
