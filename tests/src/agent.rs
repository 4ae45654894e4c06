//! An agent that speaks MCP by hand, so that a test says exactly what goes over the wire.

use anyhow::{Context, Result, ensure};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use crate::harness::Harness;

/// The protocol's newest revision, which has no handshake.
pub const MODERN: &str = "2026-07-28";
/// Those before it, which have one.
pub const LEGACY: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

/// What an agent was answered.
#[derive(Debug)]
pub struct Answer {
    /// Of HTTP.
    pub status: u16,
    /// Of HTTP.
    pub headers: HeaderMap,
    /// The message, or null when there was none.
    pub body: Value,
}

impl Answer {
    /// The code of a JSON-RPC error.
    pub fn code(&self) -> i64 {
        self.body["error"]["code"].as_i64().unwrap_or(0)
    }

    /// The result of a tool that must have succeeded.
    pub fn result(&self) -> Result<&Value> {
        let result = &self.body["result"];
        ensure!(self.status == 200 && result["isError"] == json!(false), "{} {}", self.status, self.body);
        Ok(result)
    }

    /// The structured content of a tool that must have succeeded.
    pub fn structured(&self) -> Result<&Value> {
        Ok(&self.result()?["structuredContent"])
    }

    /// The error of a tool that must have failed: `{"error":{code,message},"hint"}`.
    pub fn failure(&self) -> Result<Value> {
        let result = &self.body["result"];
        ensure!(self.status == 200 && result["isError"] == json!(true), "{} {}", self.status, self.body);
        ensure!(result.get("structuredContent").is_none(), "a failure has no structured content: {result}");
        Ok(serde_json::from_str(result["content"][0]["text"].as_str().context("a text")?)?)
    }
}

/// An agent with a credential and a revision of the protocol.
pub struct Agent<'a> {
    harness: &'a Harness,
    /// The address it calls.
    pub url: String,
    /// Sent as its credential, unless it is empty.
    pub key: String,
    /// The revision it speaks.
    pub version: &'a str,
}

impl<'a> Agent<'a> {
    /// With this key, at the service's own address.
    pub fn new(harness: &'a Harness, key: &str, version: &'a str) -> Self {
        Self { harness, url: format!("http://{}/mcp", harness.service.http()), key: key.to_owned(), version }
    }

    /// A request with the metadata that its revision wants.
    pub fn message(&self, id: impl Into<Value>, method: &str, mut params: Value) -> Value {
        if self.version == MODERN {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "test", "version": "1" });
        }
        json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
    }

    /// The headers that its revision wants for a message.
    pub fn headers(&self, message: &Value) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut insert = |name: &'static str, value: &str| {
            let value = HeaderValue::from_str(value).expect("a header of a test");
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
            if let Some(name) = message["params"]["name"].as_str() {
                insert("mcp-name", name);
            }
        }
        headers
    }

    /// Sends a body as it is. Dropping this closes the connection.
    pub fn send<B: Into<reqwest::Body>>(
        &self,
        headers: HeaderMap,
        body: B,
    ) -> impl Future<Output = Result<Response>> + Send + use<B> {
        let request = self.harness.client.post(&self.url).headers(headers).body(body);
        async move { Ok(request.send().await?) }
    }

    /// Sends a message and reads its one answer.
    pub async fn post(&self, message: &Value) -> Result<Answer> {
        told(self.send(self.headers(message), message.to_string()).await?).await
    }

    /// Asks for a method of the protocol.
    pub async fn ask(&self, method: &str, params: Value) -> Result<Answer> {
        self.post(&self.message(json!(1), method, params)).await
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Answer> {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }
}

/// An answer that has been read.
pub async fn told(response: Response) -> Result<Answer> {
    let (status, headers) = (response.status(), response.headers().clone());
    let text = response.text().await?;
    let body = match text.is_empty() {
        true => Value::Null,
        false => serde_json::from_str(&text).with_context(|| format!("{status}: {text}"))?,
    };
    ensure!(status != StatusCode::OK || headers["content-type"] == "application/json", "{headers:?}");
    Ok(Answer { status: status.as_u16(), headers, body })
}
