//! `grab site`: captures many pages of one site.

mod request;
mod rows;
mod save;
mod saved;
mod sheet;
mod wait;

use std::fs;
use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::Value;

use crate::api::Api;
use crate::args::ConnectionArgs;
use crate::failure::{Exit, Failure};
use crate::site_args::{CreateSiteArgs, SiteArgs, SiteCommand};
use crate::values::text;
use crate::{list, output};

/// Captures a site, or runs a command for the jobs that do it.
pub(crate) async fn run(api: &Api, connection: &ConnectionArgs, args: &SiteArgs) -> Result<Exit, Failure> {
    match (&args.command, &args.create.address) {
        (None, _) => create(api, connection, &args.create).await,
        (Some(command), None) => run_command(api, connection, command).await,
        (Some(_), Some(address)) => Err(Failure::Usage(format!(
            "commands such as `list` take no site; {address:?} and a command cannot be used together"
        ))),
    }
}

async fn run_command(api: &Api, connection: &ConnectionArgs, command: &SiteCommand) -> Result<Exit, Failure> {
    let json = connection.json;
    let path = |id: &str| list::path("sites", id);
    let call = match command {
        SiteCommand::List { limit } => {
            let sites = list::read_rows(api, "sites", *limit).await?;
            return list::print_rows(json, &rows::SITE_HEAD, &sites, rows::site);
        }
        SiteCommand::Pages { id, limit } => {
            let pages = list::read_rows(api, &format!("{}/pages", path(id)?), *limit).await?;
            return list::print_rows(json, &rows::PAGE_HEAD, &pages, rows::page);
        }
        SiteCommand::Save { id, output } => {
            let site = api.call(Method::GET, &path(id)?).send().await?.body;
            let directory = output.clone().unwrap_or_else(|| save::directory_of(&rows::address(&site)));
            fs::create_dir_all(&directory).map_err(Failure::file(&directory))?;
            return wait_and_save(api, connection, site, &directory).await;
        }
        SiteCommand::Delete { id } => {
            api.call(Method::DELETE, &path(id)?).send().await?;
            eprintln!("Deleted the job {id}. Its captures stay.");
            return Ok(Exit::Done);
        }
        SiteCommand::Show { id } => api.call(Method::GET, &path(id)?),
        SiteCommand::Cancel { id } => api.call(Method::POST, &format!("{}/cancel", path(id)?)),
    };
    let site = call.send().await?.body;
    print(json, &site)
}

/// Creates the job, and unless it is not waited for, saves its images.
async fn create(api: &Api, connection: &ConnectionArgs, args: &CreateSiteArgs) -> Result<Exit, Failure> {
    let body = request::body(args)?;
    let directory = if args.no_wait { None } else { Some(prepare_directory(args, &body)?) };
    let site = api.call(Method::POST, "sites").body(body).send().await?.body;
    let Some(directory) = directory else { return print(connection.json, &site) };
    if !connection.quiet {
        eprintln!("job       {} for {}", text(&site["id"]), rows::address(&site));
    }
    wait_and_save(api, connection, site, &directory).await
}

/// Creates the directory, before anything is captured and charged.
fn prepare_directory(args: &CreateSiteArgs, body: &Value) -> Result<PathBuf, Failure> {
    let directory = args.output.clone().unwrap_or_else(|| save::directory_of(&rows::address(body)));
    fs::create_dir_all(&directory).map_err(Failure::file(&directory))?;
    tempfile::tempfile_in(&directory).map_err(Failure::file(&directory))?;
    Ok(directory)
}

async fn wait_and_save(api: &Api, connection: &ConnectionArgs, site: Value, directory: &Path) -> Result<Exit, Failure> {
    let id = text(&site["id"]);
    let finish = async {
        let site = wait::until_finished(api, connection.quiet, site).await?;
        save::save(api, connection, &site, directory).await
    };
    let result = tokio::select! {
        result = finish => result,
        _ = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
    };
    if matches!(result, Err(_) | Ok(Exit::Interrupted)) {
        eprintln!("\n`grab site save {id}` waits for the job and saves its images; `grab site cancel {id}` stops it.");
    }
    result
}

/// Prints a job.
fn print(json: bool, site: &Value) -> Result<Exit, Failure> {
    if json {
        output::line(&site.to_string())?;
        return Ok(Exit::Done);
    }
    for (name, value) in rows::members(site) {
        if let Some(value) = value {
            output::line(&format!("{name:12} {value}"))?;
        }
    }
    Ok(Exit::Done)
}
