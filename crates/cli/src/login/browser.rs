//! The way through the browser: authorization code with PKCE (RFC 7636), answered to a loopback address (RFC 8252).

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

use super::discovery::Service;
use super::tokens::{self, Tokens};
use crate::failure::Failure;

/// How long somebody may take to sign in.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long the browser may take to say what it wants.
const REQUEST: Duration = Duration::from_secs(5);
/// The longest first line of a request that is read.
const MAX_LINE_BYTES: u64 = 16 << 10;

/// Sends somebody to the service's pages and waits for the answer.
pub(super) async fn sign_in(http: &Client, service: &Service, opens: bool) -> Result<Tokens, Failure> {
    let io = |error: std::io::Error| Failure::Login(format!("no loopback address can be listened on: {error}"));
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(io)?;
    let redirect = format!("http://127.0.0.1:{}/callback", listener.local_addr().map_err(io)?.port());
    let client_id = service.register(http, &redirect).await?;
    let (state, verifier) = (secret()?, secret()?);
    let url = authorize(service, &client_id, &redirect, &state, &verifier);
    if opens && open::that_detached(url.as_str()).is_ok() {
        eprintln!("Your browser has the page to sign in. If it has not, open this:\n\n  {url}\n");
    } else {
        eprintln!("Open this in a browser on this machine to sign in:\n\n  {url}\n");
    }
    let code = tokio::select! {
        code = answer(&listener, service, &state) => code?,
        () = tokio::time::sleep(PATIENCE) => {
            return Err(Failure::Login("nobody signed in within ten minutes".to_owned()));
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
    let granted = tokens::ask(http, &service.server.token_endpoint, &form).await?;
    let expires_at = granted.expires_at();
    let Some(refresh) = granted.refresh_token else {
        return Err(Failure::Login("the service gave no refresh token".to_owned()));
    };
    Ok(Tokens {
        access: granted.access_token,
        refresh,
        expires_at,
        client_id,
        token_endpoint: service.server.token_endpoint.clone(),
        revocation_endpoint: service.server.revocation_endpoint.clone(),
    })
}

fn authorize(service: &Service, client_id: &str, redirect: &str, state: &str, verifier: &str) -> Url {
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    let mut url = service.server.authorization_endpoint.clone();
    url.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", client_id)
        .append_pair("redirect_uri", redirect)
        .append_pair("scope", "grabs")
        .append_pair("state", state)
        .append_pair("code_challenge", &challenge)
        .append_pair("code_challenge_method", "S256")
        .append_pair("resource", &service.resource);
    url
}

/// 256 bits as text.
fn secret() -> Result<String, Failure> {
    let mut bytes = [0; 32];
    SysRng
        .try_fill_bytes(&mut bytes)
        .map_err(|error| Failure::Login(format!("this machine has no random bits to give: {error}")))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// The code that the browser brings back. Whatever else comes to the address is answered and passed over.
async fn answer(listener: &TcpListener, service: &Service, state: &str) -> Result<String, Failure> {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let Ok(Some(outcome)) = tokio::time::timeout(REQUEST, serve(stream, service, state)).await else { continue };
        return outcome;
    }
}

/// Answers one request; none when it was not the one that is waited for.
async fn serve(stream: TcpStream, service: &Service, state: &str) -> Option<Result<String, Failure>> {
    use tokio::io::AsyncReadExt;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    (&mut stream).take(MAX_LINE_BYTES).read_line(&mut line).await.ok()?;
    let outcome = line.split(' ').nth(1).and_then(|target| read(target, &service.server.issuer, state));
    let (status, text) = match &outcome {
        Some(Ok(_)) => ("200 OK", "You are signed in. You can close this page and go back to the terminal."),
        Some(Err(_)) => ("200 OK", "Nobody was signed in. The terminal says why. You can close this page."),
        None => ("404 Not Found", "There is nothing here."),
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
    // The browser may be gone; what it brought counts all the same.
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(page.as_bytes()).await;
    let _ = stream.shutdown().await;
    outcome
}

/// The code in a request's target; none when the request is not an answer to ours.
fn read(target: &str, issuer: &str, state: &str) -> Option<Result<String, Failure>> {
    let url = Url::parse("http://127.0.0.1").ok()?.join(target).ok()?;
    if url.path() != "/callback" {
        return None;
    }
    let of = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    // An answer to a question that we did not ask, or of somebody whom we did not ask (RFC 9207).
    if of("state").as_deref() != Some(state) || of("iss").is_some_and(|iss| iss != issuer) {
        return None;
    }
    match (of("code"), of("error")) {
        (Some(code), None) => Some(Ok(code)),
        (_, Some(error)) if error == "access_denied" => {
            Some(Err(Failure::Login("access was denied on the page".to_owned())))
        }
        (_, Some(error)) => Some(Err(Failure::Login(of("error_description").unwrap_or(error)))),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answer_to_our_question_counts() {
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
            let code = read(target, issuer, "s").map(Result::ok);
            assert_eq!(code, expected.map(|code| code.map(str::to_owned)), "{target}");
        }
    }
}
