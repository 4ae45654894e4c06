//! A minimal MCP client that builds each message and header explicitly.

use anyhow::{Context, Result, ensure};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use crate::contract::Shape;
use crate::harness::TestApp;

/// The newest protocol revision, which has no handshake.
pub const MODERN: &str = "2026-07-28";
/// Earlier revisions, which start with an `initialize` handshake.
pub const LEGACY: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

/// A response to an MCP message.
#[derive(Debug)]
pub struct McpResponse {
    /// The HTTP status.
    pub status: u16,
    /// The HTTP headers.
    pub headers: HeaderMap,
    /// The JSON-RPC message, or null if the body was empty.
    pub body: Value,
}

impl McpResponse {
    /// The JSON-RPC error code, or 0.
    pub fn code(&self) -> i64 {
        self.body["error"]["code"].as_i64().unwrap_or(0)
    }

    /// The result of a tool call. Fails if the call did not succeed.
    pub fn result(&self) -> Result<&Value> {
        let result = &self.body["result"];
        ensure!(self.status == 200 && result["isError"] == json!(false), "{} {}", self.status, self.body);
        Ok(result)
    }

    /// The structured content of a tool call. Fails if the call did not succeed.
    pub fn structured(&self) -> Result<&Value> {
        Ok(&self.result()?["structuredContent"])
    }

    /// The error of a tool call: `{"error":{code,message},"hint",cause}`. Fails if the call succeeded.
    pub fn failure(&self) -> Result<Value> {
        let result = &self.body["result"];
        ensure!(self.status == 200 && result["isError"] == json!(true), "{} {}", self.status, self.body);
        ensure!(
            result.get("structuredContent").is_none(),
            "a failed tool call must not have structured content: {result}"
        );
        Ok(serde_json::from_str(result["content"][0]["text"].as_str().context("a text")?)?)
    }
}

/// An MCP client with a credential and a protocol revision.
pub struct Agent<'a> {
    app: &'a TestApp,
    /// The URL of the MCP endpoint.
    pub url: String,
    /// The bearer token. Not sent if empty.
    pub key: String,
    /// The protocol revision.
    pub version: &'a str,
}

impl<'a> Agent<'a> {
    /// A client with this key for the service's own endpoint.
    pub fn new(app: &'a TestApp, key: &str, version: &'a str) -> Self {
        Self { app, url: format!("http://{}/mcp", app.service.http()), key: key.to_owned(), version }
    }

    /// A request, with the metadata that the protocol revision requires.
    pub fn message(&self, id: impl Into<Value>, method: &str, mut params: Value) -> Value {
        if self.version == MODERN {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "test", "version": "1" });
        }
        json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
    }

    /// The headers that the protocol revision requires for a message.
    pub fn headers(&self, message: &Value) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut insert = |name: &'static str, value: &str| {
            let value = HeaderValue::from_str(value).expect("a valid header value");
            headers.insert(HeaderName::from_static(name), value);
        };
        insert("content-type", "application/json");
        insert("accept", "application/json, text/event-stream");
        insert("mcp-protocol-version", self.version);
        if !self.key.is_empty() {
            insert("authorization", &format!("Bearer {}", self.key));
        }
        if self.version == MODERN {
            insert("mcp-method", message["method"].as_str().unwrap_or_default());
            let params = &message["params"];
            if let Some(name) = params["name"].as_str().or(params["uri"].as_str()) {
                insert("mcp-name", name);
            }
        }
        headers
    }

    /// Sends a raw body. Dropping the future closes the connection.
    pub fn send<B: Into<reqwest::Body>>(
        &self,
        headers: HeaderMap,
        body: B,
    ) -> impl Future<Output = Result<Response>> + Send + use<B> {
        let request = self.app.client.post(&self.url).headers(headers).body(body);
        async move { Ok(request.send().await?) }
    }

    /// Sends a message and reads its single response.
    pub async fn post(&self, message: &Value) -> Result<McpResponse> {
        read_response(self.send(self.headers(message), message.to_string()).await?).await
    }

    /// Calls a method of the protocol.
    pub async fn ask(&self, method: &str, params: Value) -> Result<McpResponse> {
        self.post(&self.message(json!(1), method, params)).await
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<McpResponse> {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }
}

/// Checks the text of a failed tool call against the contract. Other messages are not checked.
pub fn check_tool_error(message: &Value) -> Result<()> {
    let result = &message["result"];
    if result["isError"] != json!(true) {
        return Ok(());
    }
    let text = result["content"][0]["text"].as_str().with_context(|| format!("no text in {message}"))?;
    Shape::ToolError.check(&serde_json::from_str(text).with_context(|| text.to_owned())?)
}

/// Reads a response to its end.
pub async fn read_response(response: Response) -> Result<McpResponse> {
    let (status, headers) = (response.status(), response.headers().clone());
    let text = response.text().await?;
    let body = match text.is_empty() {
        true => Value::Null,
        false => serde_json::from_str(&text).with_context(|| format!("{status}: {text}"))?,
    };
    ensure!(status != StatusCode::OK || headers["content-type"] == "application/json", "{headers:?}");
    check_tool_error(&body)?;
    Ok(McpResponse { status: status.as_u16(), headers, body })
}
