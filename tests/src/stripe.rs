//! A stand-in for Stripe on this machine: the one request that grabd makes of its API, judged as the API's reference
//! describes it, and the events that follow, signed by the scheme that it documents. It also tells of its sessions, for
//! scripts that pay.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use grabd_domain::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::net::TcpListener;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use url::form_urlencoded;

/// The key of the account.
pub const SECRET_KEY: &str = "sk_test_of_the_stand_in";
/// What its events are signed with.
pub const WEBHOOK_SECRET: &str = "whsec_of_the_stand_in";

/// A running stand-in; it ends when it is dropped.
pub struct Stripe {
    address: SocketAddr,
    shared: Arc<Shared>,
    _task: AbortOnDropHandle<()>,
}

/// What it does with a request.
#[derive(Clone, Copy, Debug)]
pub enum Reply {
    /// Answers with this status and an error.
    Error(u16),
    /// Makes the session, and never says so.
    Silence,
    /// Answers with a success that is no session.
    Nonsense,
}

/// A request that came in.
#[derive(Clone, Debug)]
pub struct Request {
    /// `Authorization`.
    pub authorization: String,
    /// `Idempotency-Key`.
    pub idempotency_key: String,
    /// `Stripe-Version`.
    pub version: String,
    /// Its form.
    pub form: BTreeMap<String, String>,
}

#[derive(Default)]
struct Shared {
    account: Mutex<Account>,
}

#[derive(Default)]
struct Account {
    replies: VecDeque<Reply>,
    requests: Vec<Request>,
    /// By the key under which they were made.
    sessions: BTreeMap<String, (BTreeMap<String, String>, Value)>,
}

impl Stripe {
    /// Listens on any port of an address.
    pub async fn start(ip: IpAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::new(ip, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let router = Router::new()
            .route("/v1/checkout/sessions", post(create))
            .route("/v1/checkout/sessions/{id}", get(retrieve))
            .with_state(Arc::clone(&shared));
        let task = TaskTracker::new().spawn(async move {
            // Ends with its task.
            drop(axum::serve(listener, router).await);
        });
        Ok(Self { address, shared, _task: AbortOnDropHandle::new(task) })
    }

    /// Its origin.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Does this with the next requests, and what it should with all after them.
    pub fn replies(&self, replies: &[Reply]) {
        self.shared.lock().replies = replies.iter().copied().collect();
    }

    /// Everything that has come in since the last look.
    pub fn take_requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.shared.lock().requests)
    }

    /// Every session there is.
    pub fn sessions(&self) -> Vec<Value> {
        self.shared.lock().sessions.values().map(|(_, session)| session.clone()).collect()
    }
}

/// The session once its page was left: paid, or with the money still under way.
pub fn completed(session: &Value, paid: bool) -> Value {
    let mut session = session.clone();
    session["status"] = json!("complete");
    session["payment_status"] = json!(if paid { "paid" } else { "unpaid" });
    session["payment_intent"] = json!(payment_of(&session));
    session["url"] = Value::Null;
    session
}

/// The payment behind a session.
pub fn payment_of(session: &Value) -> String {
    session["id"].as_str().unwrap_or_default().replace("cs_test_", "pi_")
}

/// The charge behind a session, with so much of it paid back.
pub fn refunded(session: &Value, cents: u64) -> Value {
    json!({
        "id": "ch_1", "object": "charge", "amount": session["amount_total"], "amount_captured": session["amount_total"],
        "amount_refunded": cents, "currency": session["currency"], "paid": true, "status": "succeeded",
        "payment_intent": payment_of(session), "refunded": session["amount_total"] == json!(cents), "metadata": {},
    })
}

/// An event about an object, as it is sent.
pub fn event(kind: &str, object: &Value) -> String {
    json!({
        "id": "evt_1", "object": "event", "api_version": "2024-11-20.acacia", "created": 1_795_206_774,
        "data": { "object": object }, "livemode": false, "pending_webhooks": 1,
        "request": { "id": null, "idempotency_key": null }, "type": kind,
    })
    .to_string()
}

/// The value of `Stripe-Signature` for a body that is signed at a time.
pub fn signature(secret: &str, at: Timestamp, body: &str) -> String {
    let seconds = at.as_ms().div_euclid(1000);
    format!("t={seconds},v1={}", hmac(secret, seconds, body))
}

/// The signature itself.
pub fn hmac(secret: &str, seconds: i64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key of any length will do");
    mac.update(format!("{seconds}.{body}").as_bytes());
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn create(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: String) -> Response {
    let header = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let pairs: Vec<(String, String)> = form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    let form: BTreeMap<String, String> = pairs.iter().cloned().collect();
    let request = Request {
        authorization: header("authorization"),
        idempotency_key: header("idempotency-key"),
        version: header("stripe-version"),
        form: form.clone(),
    };
    let (reply, answer) = {
        let mut account = shared.lock();
        account.requests.push(request.clone());
        let reply = account.replies.pop_front();
        let answer = match reply {
            Some(Reply::Error(status)) => error(status, "card_declined", ""),
            Some(Reply::Nonsense) => Json(json!({ "object": "list", "data": [] })).into_response(),
            Some(Reply::Silence) | None if request.authorization != format!("Bearer {SECRET_KEY}") => {
                error(401, "", "")
            }
            Some(Reply::Silence) | None if header("content-type") != "application/x-www-form-urlencoded" => {
                error(400, "parameter_unknown", "")
            }
            Some(Reply::Silence) | None if pairs.len() != form.len() => error(400, "parameter_invalid", "repeated"),
            Some(Reply::Silence) | None => match judge(&form) {
                Err(parameter) => error(400, "parameter_invalid", parameter),
                Ok(()) => account.session(&request.idempotency_key, &form),
            },
        };
        (reply, answer)
    };
    if matches!(reply, Some(Reply::Silence)) {
        std::future::pending::<()>().await;
    }
    answer
}

async fn retrieve(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Response {
    let account = shared.lock();
    let session = account.sessions.values().map(|(_, session)| session).find(|session| session["id"] == id.as_str());
    session.map_or_else(|| error(404, "resource_missing", "id"), |session| Json(session.clone()).into_response())
}

impl Account {
    /// The same key makes the same session once, and another form under it is an error.
    fn session(&mut self, key: &str, form: &BTreeMap<String, String>) -> Response {
        if key.is_empty() || key.len() > 255 {
            return error(400, "idempotency_key_invalid", "");
        }
        let number = self.sessions.len() + 1;
        let make = || (form.clone(), made(number, form));
        let (made_of, session) = self.sessions.entry(key.to_owned()).or_insert_with(make);
        match made_of == form {
            true => Json(session.clone()).into_response(),
            false => error(400, "idempotency_key_in_use", ""),
        }
    }
}

fn made(number: usize, form: &BTreeMap<String, String>) -> Value {
    let of = |name: &str| form.get(name).cloned();
    let metadata: BTreeMap<&str, &String> = form
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix("metadata[")?.strip_suffix(']')?, value)))
        .collect();
    let amount: u64 =
        of("line_items[0][price_data][unit_amount]").and_then(|cents| cents.parse().ok()).unwrap_or_default();
    let id = format!("cs_test_{number:024}");
    json!({
        "id": id, "object": "checkout.session", "amount_subtotal": amount, "amount_total": amount,
        "cancel_url": of("cancel_url"), "client_reference_id": of("client_reference_id"),
        "currency": of("line_items[0][price_data][currency]"), "customer_email": of("customer_email"),
        "livemode": false, "metadata": metadata, "mode": of("mode"), "payment_intent": null,
        "payment_status": "unpaid", "status": "open", "success_url": of("success_url"),
        "url": format!("https://checkout.stripe.com/c/pay/{id}#fid"),
    })
}

/// Is it a form that the API takes? If not, for which parameter.
fn judge(form: &BTreeMap<String, String>) -> Result<(), &'static str> {
    const KNOWN: [&str; 10] = [
        "mode",
        "client_reference_id",
        "customer_email",
        "success_url",
        "cancel_url",
        "line_items[0][quantity]",
        "line_items[0][price_data][currency]",
        "line_items[0][price_data][unit_amount]",
        "line_items[0][price_data][product_data][name]",
        "adaptive_pricing[enabled]",
    ];
    let of = |name: &str| form.get(name).map_or("", String::as_str);
    let is_url = |name: &str| url::Url::parse(of(name)).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    let metadata: Vec<(&str, &str)> = form
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix("metadata[")?.strip_suffix(']')?, value.as_str())))
        .collect();
    let is_number = |name: &str, least: u64| of(name).parse::<u64>().is_ok_and(|number| number >= least);
    let rules = [
        (form.keys().all(|name| KNOWN.contains(&name.as_str()) || name.starts_with("metadata[")), "unknown"),
        (of("mode") == "payment", "mode"),
        (is_url("success_url"), "success_url"),
        (is_url("cancel_url"), "cancel_url"),
        (of("customer_email").contains('@') && of("customer_email").len() <= 800, "customer_email"),
        ((1..=200).contains(&of("client_reference_id").len()), "client_reference_id"),
        (is_number("line_items[0][quantity]", 1), "line_items[0][quantity]"),
        (of("line_items[0][price_data][currency]") == "usd", "line_items[0][price_data][currency]"),
        // Fifty cents are the least that a card is charged with.
        (is_number("line_items[0][price_data][unit_amount]", 50), "line_items[0][price_data][unit_amount]"),
        (!of("line_items[0][price_data][product_data][name]").is_empty(), "line_items[0][price_data][product_data]"),
        (matches!(of("adaptive_pricing[enabled]"), "true" | "false"), "adaptive_pricing[enabled]"),
        (
            metadata.len() <= 50 && metadata.iter().all(|(name, value)| name.len() <= 40 && value.len() <= 500),
            "metadata",
        ),
    ];
    match rules.into_iter().find(|(holds, _)| !holds) {
        Some((_, parameter)) => Err(parameter),
        None => Ok(()),
    }
}

fn error(status: u16, code: &str, parameter: &str) -> Response {
    let kind = if status >= 500 { "api_error" } else { "invalid_request_error" };
    // As with the real one, the message may show a part of the key.
    let message = format!("Something is wrong with the request of {SECRET_KEY}");
    let body = json!({ "error": { "type": kind, "code": code, "param": parameter, "message": message } });
    (StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST), Json(body)).into_response()
}
