//! `grab proxy`: manages servers through which pages can be loaded.

use std::io::Read;

use grabd_api::{Proxy, ProxyList};
use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::api::Api;
use crate::failure::{Exit, Failure};
use crate::login::Credential;
use crate::proxy_args::{LoginArgs, ProxyCommand};
use crate::{list, output};

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
        ProxyCommand::Create { url, name, login } => {
            let body = members([("name", Some(name.clone())), ("url", Some(url.clone()))], login)?;
            api.call(Method::POST, "proxies").body(Value::Object(body))
        }
        ProxyCommand::Show { id } => api.call(Method::GET, &path(id)?),
        ProxyCommand::Update { id, name, url, login, no_login } => {
            let mut body = members([("name", name.clone()), ("url", url.clone())], login)?;
            body.extend(no_login.then(|| ("username".to_owned(), json!(""))));
            if body.is_empty() {
                let why = "nothing to change; `grab proxy update --help` lists the options";
                return Err(Failure::Usage(why.to_owned()));
            }
            api.call(Method::PATCH, &path(id)?).body(Value::Object(body))
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
fn members<const N: usize>(
    given: [(&str, Option<String>); N],
    login: &LoginArgs,
) -> Result<Map<String, Value>, Failure> {
    let LoginArgs { username, password_stdin } = login;
    let password = match password_stdin {
        true => Some(read_password()?),
        false => None,
    };
    let all = given.into_iter().chain([("username", username.clone()), ("password", password)]);
    Ok(all.filter_map(|(name, value)| Some((name.to_owned(), json!(value?)))).collect())
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
