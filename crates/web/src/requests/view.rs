//! A recorded request for templates.

use grabd_domain::credentials::Principal;
use grabd_engine::requests::{ApiRequest, RequestPage};
use serde_json::{Value, json};

use super::PAGE;
use crate::environments::environment_name;
use crate::number::grouped;
use crate::team::TeamContext;
use crate::time_format::Moment;

/// A request.
pub(super) struct RequestView {
    pub(super) path: String,
    pub(super) at: Moment,
    pub(super) method: String,
    pub(super) called: String,
    pub(super) status: u16,
    pub(super) is_refused: bool,
    pub(super) code: String,
    pub(super) message: String,
    pub(super) environment: &'static str,
    /// The name of the key or app.
    pub(super) caller: String,
    pub(super) is_app: bool,
    pub(super) latency: String,
    pub(super) host: String,
    pub(super) options: String,
    pub(super) request_id: String,
    /// The page of the capture.
    pub(super) capture: Option<String>,
    /// Requests after this one that were not recorded. Empty if there are none.
    pub(super) omitted: String,
}

impl RequestView {
    /// Prepares a request of a page.
    pub(super) fn of(request: &ApiRequest, page: &RequestPage, at: &TeamContext) -> Self {
        let (caller, is_app) = caller(request, page);
        Self {
            path: at.path(&format!("{PAGE}/{}", request.id)),
            at: request.at.into(),
            method: request.method.clone(),
            called: request.path.clone(),
            status: request.status,
            is_refused: request.is_refused(),
            code: request.code.clone().unwrap_or_default(),
            message: request.message.clone().unwrap_or_default(),
            environment: environment_name(request.environment),
            caller,
            is_app,
            latency: format!("{} ms", grouped(request.latency_ms.into())),
            host: request.host.clone().unwrap_or_default(),
            options: request.options.join(", "),
            request_id: request.request_id.clone().unwrap_or_default(),
            capture: request.grab.map(|grab| at.path(&format!("grabs/{grab}"))),
            omitted: if request.omitted > 0 { grouped(request.omitted.into()) } else { String::new() },
        }
    }
}

/// The name of the key or app, and whether it is an app.
fn caller(request: &ApiRequest, page: &RequestPage) -> (String, bool) {
    match request.principal {
        Principal::Key(key) => (page.keys.get(&key).cloned().unwrap_or_else(|| "Deleted key".to_owned()), false),
        Principal::Grant(grant) => {
            (page.apps.get(&grant).cloned().unwrap_or_else(|| "Disconnected app".to_owned()), true)
        }
        // Requests of users are not recorded.
        Principal::User(_) => (String::new(), false),
    }
}

/// Everything that is recorded of a request, as formatted JSON.
pub(super) fn to_json(request: &ApiRequest, page: &RequestPage) -> String {
    let (name, _) = caller(request, page);
    let (key, app) = match request.principal {
        Principal::Key(key) => (Some(key.to_string()), None),
        Principal::Grant(grant) => (None, Some(grant.to_string())),
        Principal::User(_) => (None, None),
    };
    let error = request.code.as_ref().map(|code| json!({ "code": code, "message": request.message }));
    let value: Value = json!({
        "id": request.id.to_string(),
        "created_at": request.at.to_string(),
        "request_id": request.request_id,
        "environment": request.environment.as_str(),
        "key_id": key,
        "app_id": app,
        "name": name,
        "method": request.method,
        "path": request.path,
        "status": request.status,
        "error": error,
        "host": request.host,
        "options": request.options,
        "grab_id": request.grab.map(|grab| grab.to_string()),
        "latency_ms": request.latency_ms,
    });
    serde_json::to_string_pretty(&value).unwrap_or_default()
}
