//! Sign-in in the browser: authorization code flow with PKCE (RFC 7636) and a loopback redirect (RFC 8252).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::TryRng;
use rand::rngs::SysRng;
use reqwest::Client;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use super::discovery::{Registration, Service};
use super::tokens::{self, Tokens};
use crate::failure::Failure;

/// How long the user may take to sign in.
const SIGN_IN_LIMIT: Duration = Duration::from_secs(600);
/// How long one request to the loopback address may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum length of a request line.
const MAX_LINE_BYTES: u64 = 16 << 10;

/// Opens the authorization page, waits for the redirect and exchanges the code for tokens.
pub(super) async fn sign_in(
    http: &Client,
    service: &Service,
    scope: &str,
    open_browser: bool,
) -> Result<Tokens, Failure> {
    let io = |error: std::io::Error| Failure::Login(format!("cannot listen on a loopback address: {error}"));
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(io)?;
    let redirect = format!("http://127.0.0.1:{}/callback", listener.local_addr().map_err(io)?.port());
    let Registration { client_id } = service.register(http, &redirect).await?;
    let (state, verifier) = (secret()?, secret()?);
    let mut url = authorization_url(service, &client_id, &redirect, &state, &verifier);
    url.query_pairs_mut().append_pair("scope", scope);
    if open_browser && open::that_detached(url.as_str()).is_ok() {
        eprintln!("The sign-in page was opened in your browser. If it does not appear, open this URL:\n\n  {url}\n");
    } else {
        eprintln!("To sign in, open this URL in a browser on this machine:\n\n  {url}\n");
    }
    let code = tokio::select! {
        code = wait_for_code(&listener, service, &state) => code?,
        // The deadline of the sign-in.
        () = tokio::time::sleep(SIGN_IN_LIMIT) => {
            return Err(Failure::Login("no sign-in within ten minutes".to_owned()));
        }
    };
    let form = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("redirect_uri", &redirect),
        ("client_id", &client_id),
        ("code_verifier", &verifier),
        ("resource", &service.resource),
    ];
    let response = tokens::request(http, &service.server.token_endpoint, &form).await?;
    Tokens::new(response, service, client_id)
}

fn authorization_url(service: &Service, client_id: &str, redirect: &str, state: &str, verifier: &str) -> Url {
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    let mut url = service.server.authorization_endpoint.clone();
    url.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", client_id)
        .append_pair("redirect_uri", redirect)
        .append_pair("state", state)
        .append_pair("code_challenge", &challenge)
        .append_pair("code_challenge_method", "S256")
        .append_pair("resource", &service.resource);
    url
}

/// 256 random bits, base64url-encoded.
fn secret() -> Result<String, Failure> {
    let mut bytes = [0; 32];
    SysRng
        .try_fill_bytes(&mut bytes)
        .map_err(|error| Failure::Login(format!("the system's random number generator failed: {error}")))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Waits for the redirect with the code. Other requests get a response and are otherwise ignored.
async fn wait_for_code(listener: &TcpListener, service: &Service, state: &str) -> Result<String, Failure> {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let Ok(Some(outcome)) = tokio::time::timeout(REQUEST_TIMEOUT, serve(stream, service, state)).await else {
            continue;
        };
        return outcome;
    }
}

/// Serves one request. `None` if it is not the expected redirect.
async fn serve(stream: TcpStream, service: &Service, state: &str) -> Option<Result<String, Failure>> {
    use tokio::io::AsyncReadExt;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    (&mut stream).take(MAX_LINE_BYTES).read_line(&mut line).await.ok()?;
    let outcome = line.split(' ').nth(1).and_then(|target| parse_callback(target, &service.server.issuer, state));
    let (status, text) = match &outcome {
        Some(Ok(_)) => ("200 OK", "You are signed in. You can close this page and return to the terminal."),
        Some(Err(_)) => ("200 OK", "The sign-in failed. The terminal shows the reason. You can close this page."),
        None => ("404 Not Found", "Page not found."),
    };
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <meta name=color-scheme content=\"light dark\"><title>grab</title>\
         <main><h1>grab</h1><p>{text}</p></main></html>"
    );
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         referrer-policy: no-referrer\r\nconnection: close\r\n\r\n",
        page.len()
    );
    // Write errors are ignored: the code is valid even if the browser closed the connection.
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(page.as_bytes()).await;
    let _ = stream.shutdown().await;
    outcome
}

/// The code or error in a redirect. `None` if the request is not the redirect for this sign-in.
fn parse_callback(target: &str, issuer: &str, state: &str) -> Option<Result<String, Failure>> {
    let url = Url::parse("http://127.0.0.1").ok()?.join(target).ok()?;
    if url.path() != "/callback" {
        return None;
    }
    let parameter = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    // Another `state` belongs to another request; another `iss` is a mix-up attack (RFC 9207).
    if parameter("state").as_deref() != Some(state) || parameter("iss").is_some_and(|iss| iss != issuer) {
        return None;
    }
    match (parameter("code"), parameter("error")) {
        (Some(code), None) => Some(Ok(code)),
        (_, Some(error)) if error == "access_denied" => Some(Err(Failure::Login("access was denied".to_owned()))),
        (_, Some(error)) => Some(Err(Failure::Login(parameter("error_description").unwrap_or(error)))),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callback_with_another_state_or_issuer_is_ignored() {
        let issuer = "https://auth.example";
        for (target, expected) in [
            ("/callback?code=c&state=s", Some(Some("c"))),
            ("/callback?code=c&state=s&iss=https%3A%2F%2Fauth.example", Some(Some("c"))),
            ("/callback?code=c&state=s&iss=https%3A%2F%2Fevil.example", None),
            ("/callback?code=c&state=other", None),
            ("/callback?code=c", None),
            ("/callback?state=s", None),
            ("/favicon.ico", None),
            ("/callback/more?code=c&state=s", None),
            ("/callback?error=access_denied&state=s", Some(None)),
            ("/callback?error=access_denied&code=c&state=s", Some(None)),
        ] {
            let code = parse_callback(target, issuer, "s").map(Result::ok);
            assert_eq!(code, expected.map(|code| code.map(str::to_owned)), "{target}");
        }
    }
}
