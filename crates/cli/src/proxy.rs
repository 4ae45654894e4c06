//! `grab proxy`: manages servers through which pages can be loaded.

use std::io::Read;

use grabd_api::{Proxy, ProxyList};
use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api::Api;
use crate::failure::{Exit, Failure};
use crate::login::Credential;
use crate::proxy_args::{LoginArgs, ProxyCommand};
use crate::{list, output, values};

/// The longest password that is read, in bytes. The service accepts fewer.
const MAX_PASSWORD_BYTES: u64 = 4096;

/// Runs a proxy command.
pub(crate) async fn run(api: &Api, json: bool, command: &ProxyCommand) -> Result<Exit, Failure> {
    let path = |id: &str| list::path("proxies", id);
    let call = match command {
        ProxyCommand::List => {
            let body = api.call(Method::GET, "proxies").send().await?.body;
            return print_list(json, &body);
        }
        ProxyCommand::Delete { id } => {
            api.call(Method::DELETE, &path(id)?).send().await?;
            eprintln!("Deleted the proxy {id}.");
            return Ok(Exit::Done);
        }
        ProxyCommand::Create { url, name, login: LoginArgs { username, password_stdin } } => {
            let body = members(Some(name.as_str()), Some(url.as_str()), username.as_deref(), *password_stdin)?;
            api.call(Method::POST, "proxies").body(body)
        }
        ProxyCommand::Show { id } => api.call(Method::GET, &path(id)?),
        ProxyCommand::Update { id, name, url, login: LoginArgs { username, password_stdin }, no_login } => {
            let username = if *no_login { Some("") } else { username.as_deref() };
            let body = members(name.as_deref(), url.as_deref(), username, *password_stdin)?;
            if body == json!({}) {
                let why = "nothing to change; `grab proxy update --help` lists the options";
                return Err(Failure::Usage(why.to_owned()));
            }
            api.call(Method::PATCH, &path(id)?).body(body)
        }
    };
    let body = call.send().await?.body;
    match (json, read::<Proxy<'_>>(&body)) {
        (false, Some(proxy)) => print(&proxy)?,
        (true, _) | (false, None) => output::line(&body.to_string())?,
    }
    if matches!((command, api.credential()), (ProxyCommand::Create { .. }, Credential::SignIn(_))) {
        eprintln!(
            "Note: this proxy belongs to your sign-in, and is deleted when that ends: with `grab logout` or another \
             `grab login`, or after 30 days without use. Create one that stays with an API key, or in the web app."
        );
    }
    Ok(Exit::Done)
}

/// The request body. Members that are not given are left out.
fn members(
    name: Option<&str>,
    url: Option<&str>,
    username: Option<&str>,
    has_password: bool,
) -> Result<Value, Failure> {
    let password = match has_password {
        true => Some(read_password()?),
        false => None,
    };
    Ok(values::members([
        ("name", name.map(Value::from)),
        ("url", url.map(Value::from)),
        ("username", username.map(Value::from)),
        ("password", password.map(Value::from)),
    ]))
}

/// Reads a password without the end of its line.
fn read_password() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin().take(MAX_PASSWORD_BYTES).read_to_string(&mut text).map_err(Failure::file("stdin"))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Reads what the service sent. `None` if this version does not know it.
fn read<T: DeserializeOwned>(body: &Value) -> Option<T> {
    serde_json::from_value(body.clone()).ok()
}

fn print_list(json: bool, body: &Value) -> Result<Exit, Failure> {
    if json {
        let rows = body["data"].as_array().map(Vec::as_slice).unwrap_or_default();
        rows.iter().try_for_each(|row| output::line(&row.to_string()))?;
        return Ok(Exit::Done);
    }
    let proxies = read::<ProxyList<'_>>(body).map(|list| list.data).unwrap_or_default();
    let rows: Vec<Vec<String>> = proxies.iter().map(cells).collect();
    output::table(&["ID", "URL", "LOGIN", "LAST USED", "LAST ERROR", "NAME"], &rows)?;
    Ok(Exit::Done)
}

fn cells(proxy: &Proxy<'_>) -> Vec<String> {
    vec![
        proxy.id.to_string(),
        proxy.url.to_string(),
        yes_no(proxy.has_login).to_owned(),
        output::or_dash(proxy.last_used_at.as_deref().map(output::moment)),
        output::or_dash(proxy.last_error.as_deref()),
        proxy.name.to_string(),
    ]
}

fn print(proxy: &Proxy<'_>) -> Result<(), Failure> {
    let last_error = match (&proxy.last_error, &proxy.last_error_at) {
        (Some(problem), Some(at)) => format!("{problem} at {}", output::moment(at)),
        (_, _) => "-".to_owned(),
    };
    let lines = [
        ("id", proxy.id.to_string()),
        ("name", proxy.name.to_string()),
        ("url", proxy.url.to_string()),
        ("login", yes_no(proxy.has_login).to_owned()),
        ("created", output::moment(&proxy.created_at)),
        ("updated", output::moment(&proxy.updated_at)),
        ("last used", output::or_dash(proxy.last_used_at.as_deref().map(output::moment))),
        ("last error", last_error),
    ];
    lines.iter().try_for_each(|(name, value)| output::line(&format!("{name:12} {value}")))
}

const fn yes_no(flag: bool) -> &'static str {
    if flag { "yes" } else { "no" }
}
