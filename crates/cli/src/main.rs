//! `grab`: captures of web pages from a shell.
//!
//! One verb is one file: `capture/`, `list.rs`, `watch.rs`, `usage.rs`, `webhooks.rs`, `login/`. To add one, give it a
//! variant in `args.rs` and a line in [`run`]. What programs read goes to stdout, everything for people to stderr.
//!
//! *Invariant:* nothing of the service's own code is in here. This lives on the public contract, and so tries it.

mod api;
mod args;
mod capture;
mod failure;
mod list;
mod login;
mod output;
mod settings;
mod usage;
mod watch;
mod webhooks;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use api::Api;
use args::{Args, Connection, Verb};
use failure::{Exit, Failure};
use settings::Settings;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args).await {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("grab: {}", failure.told());
            if let Some(hint) = failure.hint() {
                eprintln!("{hint}");
            }
            failure.exit().into()
        }
    }
}

async fn run(args: &Args) -> Result<Exit, Failure> {
    let Args { connection, capture, verb } = args;
    let Connection { json, .. } = *connection;
    match verb {
        Some(_) if !capture.urls.is_empty() || capture.from.is_some() => {
            let why = "a verb such as `list` takes no pages, and pages take no verb";
            return Err(Failure::Usage(why.to_owned()));
        }
        Some(Verb::Completions { shell }) => {
            clap_complete::generate(*shell, &mut Args::command(), "grab", &mut std::io::stdout());
            return Ok(Exit::Done);
        }
        Some(Verb::Man) => {
            let mut stdout = std::io::stdout();
            clap_mangen::Man::new(Args::command()).render(&mut stdout).map_err(Failure::file("stdout"))?;
            return Ok(Exit::Done);
        }
        Some(_) | None => {}
    }
    let settings = Settings::read(connection)?;
    let api = Api::new(&settings)?;
    match verb.clone() {
        None => capture::run(&api, connection, capture).await,
        Some(Verb::List { limit, status, after }) => list::list(&api, json, limit, status, after).await,
        Some(Verb::Show { id, open, output }) => list::show(&api, json, &id, open, output.as_deref()).await,
        Some(Verb::Watch { id }) => watch::watch(&api, json, &id).await,
        Some(Verb::Delete { ids }) => list::delete(&api, &ids).await,
        Some(Verb::Usage) => usage::usage(&api, json).await,
        Some(Verb::Pricing { provider, full }) => usage::pricing(&api, json, provider.as_deref(), full).await,
        Some(Verb::Login { no_browser }) => login::login(&settings, !no_browser).await,
        Some(Verb::Logout) => login::logout(&settings).await,
        Some(Verb::Webhooks(verb)) => webhooks::run(&api, json, &verb).await,
        Some(Verb::Completions { .. } | Verb::Man) => Ok(Exit::Done),
    }
}
