//! `grab read`: a text of one capture.

use grabd_api::GrabText;
use reqwest::{Method, StatusCode};
use serde::Deserialize;

use crate::api::Api;
use crate::args::ReadArgs;
use crate::failure::{Exit, Failure};
use crate::list;
use crate::output;

/// The largest part that one request reads, in tokens.
const MAX_TOKENS: u32 = 50_000;

/// Prints the text: all of it, or with a number of tokens one part and how to go on.
pub(crate) async fn read(api: &Api, json: bool, args: &ReadArgs) -> Result<Exit, Failure> {
    let ReadArgs { id, format, max_tokens, from, compare_to } = args;
    let path = format!("{}/read", list::path("grabs", id)?);
    let tokens = max_tokens.unwrap_or(MAX_TOKENS).to_string();
    let mut from = *from;
    loop {
        let mut call = api.call(Method::GET, &path).query("format", format).query("max_tokens", &tokens);
        call = call.query("from", &from.to_string());
        if let Some(earlier) = compare_to {
            call = call.query("compare_to", earlier);
        }
        let body = call.send().await?.body;
        let part = GrabText::deserialize(&body)
            .map_err(|_| Failure::UnexpectedResponse { url: api.base().clone(), status: StatusCode::OK })?;
        if json {
            output::line(&body.to_string())?;
        } else {
            output::write(part.text.as_bytes())?;
        }
        match (part.next, max_tokens) {
            (None, _) => return Ok(Exit::Done),
            (Some(next), None) if next > from => from = next,
            (Some(next), _) => {
                eprintln!(
                    "{} of about {} tokens. For the rest: --from {next}",
                    part.tokens_estimate, part.total_tokens
                );
                return Ok(Exit::Done);
            }
        }
    }
}
