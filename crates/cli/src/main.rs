//! `grab`, the command line client of grabd.
//!
//! Each command has its own file: `capture/`, `list.rs`, `read.rs`, `watch.rs`, `usage.rs`, `webhooks.rs`,
//! `monitor.rs`, `proxy.rs`, `site/`, `diff.rs`, `baseline.rs`, `config.rs`, `auth.rs`, `login/`, `verify.rs`. To add one,
//! add a variant in `args.rs` and a match arm in [`run`]. Machine-readable output goes to stdout, messages for the user
//! to stderr.
//!
//! *Invariant:* this crate uses only the public API and none of the service's crates, so it also tests the public API. It shares the
//! formats of the API and of evidence with the service.

mod api;
mod args;
mod auth;
mod baseline;
mod capture;
mod config;
mod diff;
mod failure;
mod format;
mod html;
mod http;
mod link;
mod list;
mod login;
mod monitor;
mod monitor_args;
mod options;
mod output;
mod proxy;
mod proxy_args;
mod read;
mod report;
mod settings;
mod share;
mod site;
mod site_args;
mod usage;
mod values;
mod verify;
mod watch;
mod webhooks;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use api::Api;
use args::{Args, AuthCommand, Command, ConfigCommand, ConnectionArgs};
use failure::{Exit, Failure};
use login::SignInWay;
use settings::Settings;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args).await {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("grab: {}", failure.message());
            if let Some(hint) = failure.hint() {
                eprintln!("{hint}");
            }
            failure.exit().into()
        }
    }
}

async fn run(args: &Args) -> Result<Exit, Failure> {
    let Args { connection, capture, command } = args;
    let ConnectionArgs { json, .. } = *connection;
    match command {
        Some(_) if !capture.urls.is_empty() || capture.from.is_some() => {
            let why = "commands such as `list` take no pages to capture";
            return Err(Failure::Usage(why.to_owned()));
        }
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Args::command(), "grab", &mut script);
            output::write(&script)?;
            return Ok(Exit::Done);
        }
        Some(Command::Man) => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Args::command()).render(&mut page).map_err(Failure::file("stdout"))?;
            output::write(&page)?;
            return Ok(Exit::Done);
        }
        Some(Command::Config { command }) => {
            return config::run(connection, command.as_ref().unwrap_or(&ConfigCommand::Show));
        }
        Some(Command::Verify(args)) => return verify::verify(json, args).await,
        Some(_) | None => {}
    }
    let mut settings = Settings::read(connection)?;
    if let Some(Command::Link(args)) = command {
        settings.set_link(args);
        return link::link(&settings, json, args).map(|()| Exit::Done);
    }
    let api = Api::new(&settings)?;
    match command.clone() {
        None => match &capture.baseline {
            Some(file) => baseline::make_or_compare(&api, connection, capture, file).await,
            None => capture::run(&api, connection, capture).await,
        },
        Some(Command::List(args)) => list::list(&api, json, &args).await,
        Some(Command::Read(args)) => read::read(&api, json, &args).await,
        Some(Command::Show { id, open, output }) => list::show(&api, json, &id, open, output.as_deref()).await,
        Some(Command::Diff(args)) => match &args.baseline {
            Some(file) => baseline::run(&api, connection, &args, file).await,
            None => diff::diff(&api, connection, &args).await,
        },
        Some(Command::Watch { id }) => watch::watch(&api, json, &id).await,
        Some(Command::Delete { ids }) => list::delete(&api, &ids).await,
        Some(Command::Usage) => usage::usage(&api, json).await,
        Some(Command::Pricing { provider, full }) => usage::pricing(&api, json, provider.as_deref(), full).await,
        Some(Command::Login { no_browser, device, ssh_connection, manage }) => {
            let way = match (no_browser, device || ssh_connection.is_some()) {
                (true, _) => SignInWay::PrintedUrl,
                (false, true) => SignInWay::Code,
                (false, false) => SignInWay::Browser,
            };
            login::login(&settings, way, manage).await
        }
        Some(Command::Logout) => login::logout(&settings).await,
        Some(Command::Auth(AuthCommand::Status)) => auth::status(&api, &settings, json).await,
        Some(Command::Monitor(command)) => monitor::run(&api, json, &command).await,
        Some(Command::Proxy(command)) => proxy::run(&api, json, &command).await,
        Some(Command::Site(args)) => site::run(&api, connection, &args).await,
        Some(Command::Webhooks(command)) => webhooks::run(&api, json, &command).await,
        Some(
            Command::Completions { .. } | Command::Man | Command::Config { .. } | Command::Link(_) | Command::Verify(_),
        ) => Ok(Exit::Done),
    }
}
