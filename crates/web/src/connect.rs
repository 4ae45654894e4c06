//! `/connect`: how to connect an agent, with commands and configurations for the usual clients that have this service's URLs.
//!
//! Each client has a tab, which is a link: the page needs no script.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

use crate::extract::VisitorPage;
use crate::page::{Layout, page};
use crate::paths;
use crate::problem::Problem;
use crate::state::Web;

/// The parameter with the name of a client.
const CLIENT: &str = "client";
/// The name of this service in the configuration of a client.
const SERVER: &str = "grabd";

#[derive(Template)]
#[template(path = "connect.html")]
struct ConnectPage {
    layout: Layout,
    tabs: Vec<ClientTab>,
    client: Client,
}

/// A link to a client.
struct ClientTab {
    path: String,
    label: &'static str,
    is_here: bool,
}

/// How to connect a client.
struct Client {
    /// The value of the parameter.
    name: &'static str,
    label: &'static str,
    steps: Vec<Step>,
    /// The same with an API key instead of signing in. None if the client can only sign in.
    with_key: Option<Step>,
}

/// What to do, and the command or text for it.
struct Step {
    text: &'static str,
    code: Option<String>,
}

impl Step {
    const fn new(text: &'static str) -> Self {
        Self { text, code: None }
    }

    const fn with_code(text: &'static str, code: String) -> Self {
        Self { text, code: Some(code) }
    }
}

/// Shows the page with one of the clients: the first one if the query names none.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    VisitorPage { headers, query, .. }: VisitorPage,
) -> Result<Response, Problem> {
    let layout = match web.signed_in(&headers).await? {
        Some(user) => web.user_layout(&user.session, paths::CONNECT),
        None => web.visitor_layout(paths::CONNECT),
    };
    let oauth = web.core.oauth();
    let clients = clients(&oauth.mcp_url, &oauth.base_url);
    let chosen = clients.iter().position(|client| client.name == query.get(CLIENT)).unwrap_or(0);
    let tab = |(at, client): (usize, &Client)| ClientTab {
        path: format!("{}?{CLIENT}={}", paths::CONNECT, client.name),
        label: client.label,
        is_here: at == chosen,
    };
    let tabs = clients.iter().enumerate().map(tab).collect();
    let client = clients.into_iter().nth(chosen).ok_or_else(|| Problem::not_found("There is no such client."))?;
    let layout = Layout { script: Some(web.assets.docs.path.clone()), ..layout };
    Ok(page(StatusCode::OK, &ConnectPage { layout, tabs, client }))
}

/// All clients, with the URL of MCP and the base URL of the API.
fn clients(mcp_url: &str, base_url: &str) -> [Client; 6] {
    [claude_code(mcp_url), claude(mcp_url), cursor(mcp_url), vs_code(mcp_url), command_line(base_url), other(mcp_url)]
}

fn claude_code(url: &str) -> Client {
    let add = format!("claude mcp add --transport http {SERVER} {url}");
    let with_key = format!("{add} \\\n  --header \"Authorization: Bearer $GRAB_API_KEY\"");
    Client {
        name: "claude-code",
        label: "Claude Code",
        steps: vec![
            Step::with_code("Add the server in a terminal.", add),
            Step::new(
                "In Claude Code, enter /mcp, choose grabd and sign in. A page of this service opens, where you choose the team \
                 that it may use.",
            ),
            Step::with_code("Ask for a capture.", "Capture https://example.com as it looks on a phone.".to_owned()),
        ],
        with_key: Some(Step::with_code(
            "Add the server with the key in the variable GRAB_API_KEY, such as on a machine without a browser.",
            with_key,
        )),
    }
}

fn claude(url: &str) -> Client {
    Client {
        name: "claude",
        label: "Claude",
        steps: vec![
            Step::with_code(
                "In the settings of Claude, open Connectors, add a custom connector, and enter this URL.",
                url.to_owned(),
            ),
            Step::new(
                "Connect it and sign in. A page of this service opens, where you choose the team that it may use.",
            ),
            Step::new("Claude connects over the internet: this works only if the URL is public and begins with https."),
        ],
        with_key: None,
    }
}

fn cursor(url: &str) -> Client {
    let header = json!({ "Authorization": "Bearer ${env:GRAB_API_KEY}" });
    Client {
        name: "cursor",
        label: "Cursor",
        steps: vec![
            Step::with_code(
                "Add the server to ~/.cursor/mcp.json for all projects, or to .cursor/mcp.json of one project.",
                configuration("mcpServers", &[("url", url.into())]),
            ),
            Step::new(
                "In the settings of Cursor, open the MCP servers, choose grabd and sign in. A page of this service opens, where \
                 you choose the team that it may use.",
            ),
        ],
        with_key: Some(Step::with_code(
            "Use the key in the variable GRAB_API_KEY of your environment.",
            configuration("mcpServers", &[("url", url.into()), ("headers", header)]),
        )),
    }
}

fn vs_code(url: &str) -> Client {
    let server = [("type", "http".into()), ("url", url.into())];
    let header = json!({ "Authorization": "Bearer ${input:grab-api-key}" });
    let [kind, address] = server.clone();
    let with_key = configuration("servers", &[kind, address, ("headers", header)]);
    // The configuration begins with its brace.
    let servers = with_key.trim_start_matches('{');
    let inputs = "  \"inputs\": [\n    {\n      \"type\": \"promptString\",\n      \"id\": \"grab-api-key\",\n      \
                  \"description\": \"API key of grabd\",\n      \"password\": true\n    }\n  ],";
    Client {
        name: "vs-code",
        label: "VS Code",
        steps: vec![
            Step::with_code("Add the server to .vscode/mcp.json of a project.", configuration("servers", &server)),
            Step::new(
                "Start the server and sign in. A page of this service opens, where you choose the team that it may use.",
            ),
        ],
        with_key: Some(Step::with_code("Let VS Code ask for a key once.", format!("{{\n{inputs}{servers}"))),
    }
}

fn command_line(base_url: &str) -> Client {
    let (address, capture) = (format!("export GRAB_BASE_URL={base_url}"), "grab https://example.com -o page.png");
    Client {
        name: "command-line",
        label: "Command line",
        steps: vec![
            Step::with_code(
                "Sign in with the program grab. A page of this service opens, where you choose the team that it may use.",
                format!("{address}\ngrab login"),
            ),
            Step::with_code("Capture a page.", capture.to_owned()),
        ],
        with_key: Some(Step::with_code(
            "Use a key in the variable GRAB_API_KEY instead.",
            format!("{address}\nexport GRAB_API_KEY=sk_test_…\n{capture}"),
        )),
    }
}

fn other(url: &str) -> Client {
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "get_usage", "arguments": {} },
    });
    let header = json!({ "Authorization": "Bearer sk_test_…" });
    Client {
        name: "other",
        label: "Other clients",
        steps: vec![
            Step::with_code(
                "Add this URL as an MCP server. The transport is Streamable HTTP. A client that supports OAuth opens the page \
                 where you sign in and choose the team that it may use.",
                url.to_owned(),
            ),
            Step::with_code(
                "Test the connection without a client, with the key in the variable GRAB_API_KEY.",
                format!(
                    "curl -sS {url} \\\n  -H \"Authorization: Bearer $GRAB_API_KEY\" -H 'Content-Type: application/json' \
                     \\\n  -H 'Accept: application/json, text/event-stream' \\\n  -d '{call}'"
                ),
            ),
        ],
        with_key: Some(Step::with_code(
            "Most clients without OAuth read a file like this one. Replace the key by yours.",
            configuration("mcpServers", &[("type", "http".into()), ("url", url.into()), ("headers", header)]),
        )),
    }
}

/// A configuration with one server, whose members are each on a line.
fn configuration(servers: &str, members: &[(&str, Value)]) -> String {
    let line = |(name, value): &(&str, Value)| {
        let Some(headers) = value.as_object() else { return format!("      \"{name}\": {value}") };
        let headers = headers.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect::<Vec<_>>();
        format!("      \"{name}\": {{ {} }}", headers.join(", "))
    };
    let members = members.iter().map(line).collect::<Vec<_>>().join(",\n");
    format!("{{\n  \"{servers}\": {{\n    \"{SERVER}\": {{\n{members}\n    }}\n  }}\n}}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const MCP_URL: &str = "https://grabs.example.com/mcp";
    const BASE_URL: &str = "https://grabs.example.com/v1";

    fn codes(client: &Client) -> impl Iterator<Item = &str> {
        client.steps.iter().chain(&client.with_key).filter_map(|step| step.code.as_deref())
    }

    #[test]
    fn each_client_has_the_urls_of_this_service_and_no_command_of_an_operator() {
        let clients = clients(MCP_URL, BASE_URL);
        let names: BTreeSet<&str> = clients.iter().map(|client| client.name).collect();
        assert_eq!(names.len(), clients.len());
        for client in &clients {
            let all: String = codes(client).collect();
            assert!(all.contains(MCP_URL) || all.contains(BASE_URL), "{}: {all}", client.name);
            assert!(!all.contains("grabd admin"), "{}: {all}", client.name);
        }
    }

    #[test]
    fn configurations_are_json_with_the_url_and_at_most_one_header() {
        let clients = clients(MCP_URL, BASE_URL);
        let configurations: Vec<Value> = clients
            .iter()
            .flat_map(codes)
            .filter(|code| code.starts_with('{'))
            .map(|code| serde_json::from_str(code).unwrap())
            .collect();
        assert_eq!(configurations.len(), 5);
        for configuration in configurations {
            let servers = configuration.get("mcpServers").or(configuration.get("servers")).unwrap();
            let server = &servers[SERVER];
            assert_eq!(server["url"], MCP_URL, "{configuration}");
            if let Some(headers) = server.get("headers") {
                let value = headers["Authorization"].as_str().unwrap();
                assert!(value.starts_with("Bearer "), "{configuration}");
            }
        }
    }

    #[test]
    fn commands_are_those_of_the_documentation() {
        let documented = include_str!("../../../docs/MCP.md");
        let clients = clients("http://127.0.0.1:8080/mcp", "http://127.0.0.1:8080/v1");
        let other = clients.iter().find(|client| client.name == "other").unwrap();
        for code in codes(other) {
            assert!(documented.contains(code), "{code}");
        }
    }
}
