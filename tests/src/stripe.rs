//! A local fake of Stripe: the one API request that grabd sends, validated according to the API reference, and the
//! events that follow, signed by the documented scheme. It also returns its sessions to scripts that pay.

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

/// The secret API key.
pub const SECRET_KEY: &str = "sk_test_of_the_stand_in";
/// The signing secret of events.
pub const WEBHOOK_SECRET: &str = "whsec_of_the_stand_in";

/// A running server. It stops when dropped.
pub struct FakeStripe {
    address: SocketAddr,
    shared: Arc<Shared>,
    _task: AbortOnDropHandle<()>,
}

/// A scripted reaction to a request.
#[derive(Clone, Copy, Debug)]
pub enum Reply {
    /// Responds with this status and an error.
    Error(u16),
    /// Creates the session and never responds.
    NoResponse,
    /// Responds with 200 and an object that is not a session.
    Malformed,
}

/// A received request.
#[derive(Clone, Debug)]
pub struct Request {
    /// `Authorization`.
    pub authorization: String,
    /// `Idempotency-Key`.
    pub idempotency_key: String,
    /// `Stripe-Version`.
    pub version: String,
    /// The form fields.
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
    /// Form and session by idempotency key.
    sessions: BTreeMap<String, (BTreeMap<String, String>, Value)>,
}

impl FakeStripe {
    /// Listens on a free port of an address.
    pub async fn start(ip: IpAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::new(ip, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let router = Router::new()
            .route("/v1/checkout/sessions", post(create))
            .route("/v1/checkout/sessions/{id}", get(retrieve))
            .with_state(Arc::clone(&shared));
        let task = TaskTracker::new().spawn(async move {
            // Ends when the task is aborted.
            drop(axum::serve(listener, router).await);
        });
        Ok(Self { address, shared, _task: AbortOnDropHandle::new(task) })
    }

    /// The origin of the server.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Reacts to the next requests like this, and to all later ones normally.
    pub fn reply_with(&self, replies: &[Reply]) {
        self.shared.lock().replies = replies.iter().copied().collect();
    }

    /// Removes and returns the requests received since the last call.
    pub fn take_requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.shared.lock().requests)
    }

    /// All sessions.
    pub fn sessions(&self) -> Vec<Value> {
        self.shared.lock().sessions.values().map(|(_, session)| session.clone()).collect()
    }
}

/// The session after checkout: paid, or with the payment still pending.
pub fn completed(session: &Value, paid: bool) -> Value {
    let mut session = session.clone();
    session["status"] = json!("complete");
    session["payment_status"] = json!(if paid { "paid" } else { "unpaid" });
    session["payment_intent"] = json!(payment_id(&session));
    session["url"] = Value::Null;
    session
}

/// The payment intent id of a session.
pub fn payment_id(session: &Value) -> String {
    session["id"].as_str().unwrap_or_default().replace("cs_test_", "pi_")
}

/// The charge of a session, with this amount refunded.
pub fn refunded(session: &Value, cents: u64) -> Value {
    json!({
        "id": "ch_1", "object": "charge", "amount": session["amount_total"], "amount_captured": session["amount_total"],
        "amount_refunded": cents, "currency": session["currency"], "paid": true, "status": "succeeded",
        "payment_intent": payment_id(session), "refunded": session["amount_total"] == json!(cents), "metadata": {},
    })
}

/// A dispute of the payment of a session.
pub fn disputed(session: &Value, status: &str) -> Value {
    json!({
        "id": format!("du_of_{}", payment_id(session)), "object": "dispute", "amount": session["amount_total"],
        "charge": "ch_1", "currency": session["currency"], "payment_intent": payment_id(session),
        "reason": "fraudulent", "status": status, "metadata": {},
    })
}

/// The JSON body of an event about an object.
pub fn event(kind: &str, object: &Value) -> String {
    json!({
        "id": "evt_1", "object": "event", "api_version": "2024-11-20.acacia", "created": 1_795_206_774,
        "data": { "object": object }, "livemode": false, "pending_webhooks": 1,
        "request": { "id": null, "idempotency_key": null }, "type": kind,
    })
    .to_string()
}

/// The `Stripe-Signature` value for a body that is signed at a time.
pub fn signature(secret: &str, at: Timestamp, body: &str) -> String {
    let seconds = at.as_ms().div_euclid(1000);
    format!("t={seconds},v1={}", hmac(secret, seconds, body))
}

/// The hexadecimal HMAC.
pub fn hmac(secret: &str, seconds: i64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC accepts keys of any length");
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
            Some(Reply::Malformed) => Json(json!({ "object": "list", "data": [] })).into_response(),
            Some(Reply::NoResponse) | None if request.authorization != format!("Bearer {SECRET_KEY}") => {
                error(401, "", "")
            }
            Some(Reply::NoResponse) | None if header("content-type") != "application/x-www-form-urlencoded" => {
                error(400, "parameter_unknown", "")
            }
            Some(Reply::NoResponse) | None if pairs.len() != form.len() => error(400, "parameter_invalid", "repeated"),
            Some(Reply::NoResponse) | None => match validate(&form) {
                Err(parameter) => error(400, "parameter_invalid", parameter),
                Ok(()) => account.session(&request.idempotency_key, &form),
            },
        };
        (reply, answer)
    };
    if matches!(reply, Some(Reply::NoResponse)) {
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
    /// Creates one session per key. Another form under the same key is an error.
    fn session(&mut self, key: &str, form: &BTreeMap<String, String>) -> Response {
        if key.is_empty() || key.len() > 255 {
            return error(400, "idempotency_key_invalid", "");
        }
        let number = self.sessions.len() + 1;
        let make = || (form.clone(), new_session(number, form));
        let (original_form, session) = self.sessions.entry(key.to_owned()).or_insert_with(make);
        match original_form == form {
            true => Json(session.clone()).into_response(),
            false => error(400, "idempotency_key_in_use", ""),
        }
    }
}

fn new_session(number: usize, form: &BTreeMap<String, String>) -> Value {
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

/// Validates a form as the API does. Returns the invalid parameter.
fn validate(form: &BTreeMap<String, String>) -> Result<(), &'static str> {
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
        // Stripe charges cards at least 50 cents.
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
    // Like the real API, the message may contain a part of the key.
    let message = format!("invalid request with key {SECRET_KEY}");
    let body = json!({ "error": { "type": kind, "code": code, "param": parameter, "message": message } });
    (StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST), Json(body)).into_response()
}
