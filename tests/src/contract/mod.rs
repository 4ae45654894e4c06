//! The objects of the public contract as strict JSON schemas, and the checks of error responses that they allow.
//!
//! [`crate::client`] checks every error response that a test receives, and [`crate::agent`] every failed tool call.

use std::sync::LazyLock;

use anyhow::{Context, Result, ensure};
use jsonschema::Validator;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const SCHEMA: &str = include_str!("../../contract/schema.json");

/// The header with the cause of an error.
const ERROR_CAUSE: &str = "error-cause";

/// An object of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The body of an error response: code and message, and nothing else.
    Error,
    /// The text of a failed tool call: the error, and a hint and the cause beside it.
    ToolError,
    /// The response to a batch.
    Batch,
    /// A grab.
    Grab,
    /// A page of grabs.
    GrabList,
    /// Balance and usage.
    Usage,
    /// The pricing packet.
    Pricing,
}

impl Shape {
    const ALL: [Self; 7] =
        [Self::Error, Self::ToolError, Self::Batch, Self::Grab, Self::GrabList, Self::Usage, Self::Pricing];

    /// Fails with everything that is wrong with a value.
    pub fn check(self, value: &Value) -> Result<()> {
        static VALIDATORS: LazyLock<[Validator; Shape::ALL.len()]> = LazyLock::new(|| Shape::ALL.map(Shape::validator));
        let problems: Vec<String> = VALIDATORS[self as usize]
            .iter_errors(value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        ensure!(problems.is_empty(), "this is no {self:?} of the contract: {value}: {problems:?}");
        Ok(())
    }

    fn validator(self) -> Validator {
        let mut schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
        schema["$ref"] = json!(format!("#/$defs/{self:?}"));
        jsonschema::options().should_validate_formats(true).build(&schema).expect("the schema is valid")
    }
}

/// Checks a response of the service that is an error, or may contain errors.
///
/// # Errors
/// Errors of the API must have the envelope of the contract, and all errors the header with their cause.
pub fn check_response(method: &Method, path: &str, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Result<()> {
    let is_json = headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if status.is_success() {
        return Shape::Batch.check(&serde_json::from_slice(body)?);
    }
    let cause = headers.get(ERROR_CAUSE).map(|cause| cause.to_str()).transpose()?;
    ensure!(
        matches!(cause, Some("request" | "target" | "service")) && headers.get_all(ERROR_CAUSE).iter().count() == 1,
        "Error-Cause is {cause:?}"
    );
    if *method == Method::HEAD {
        ensure!(body.is_empty(), "a response to HEAD has a body");
        return Ok(());
    }
    let is_oauth = path.contains("/oauth/") || path.starts_with("/.well-known/");
    if !is_json {
        // Pages of the web app, and the pictures of errors that links may ask for.
        ensure!(!path.starts_with("/v1/") || path == "/v1/shot", "an error of the API is not JSON");
        return Ok(());
    }
    let body: Value = serde_json::from_slice(body)?;
    match (&body["error"], &body["jsonrpc"]) {
        // RFC 6749 and RFC 7591 specify these.
        (Value::String(_), Value::Null) if is_oauth => Ok(()),
        (Value::Object(_), Value::String(_)) if !path.starts_with("/v1/") => Ok(()),
        _ => Shape::Error.check(&body),
    }
}

/// An error response of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// The error code.
    pub code: String,
    /// The message for people.
    pub message: String,
    /// Whose fault it is.
    pub cause: String,
}

impl ApiError {
    /// Reads an error response. Fails if the response is none.
    pub async fn read(response: reqwest::Response) -> Result<Self> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body: Value = response.json().await?;
        let text = |member: &str| Some(body["error"][member].as_str()?.to_owned());
        let (code, message) = text("code").zip(text("message")).with_context(|| format!("{status} {body}"))?;
        let cause = headers.get(ERROR_CAUSE).with_context(|| format!("no cause of {status} {body}"))?;
        Ok(Self { status, code, message, cause: cause.to_str()?.to_owned() })
    }

    /// Status, code and cause.
    pub fn summary(&self) -> (u16, &str, &str) {
        (self.status, &self.code, &self.cause)
    }
}

#[cfg(test)]
mod tests;
