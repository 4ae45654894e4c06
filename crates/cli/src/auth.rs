//! `grab auth status`.

use reqwest::Method;
use serde_json::json;

use crate::api::Api;
use crate::failure::{Exit, Failure};
use crate::login::Credential;
use crate::output;
use crate::settings::{KeySource, Settings};

/// Prints which service and which credential are used, and checks that the service accepts it. The credential itself is
/// not printed.
pub(crate) async fn status(api: &Api, settings: &Settings, json: bool) -> Result<Exit, Failure> {
    let (credential, source) = match (api.credential(), &settings.key_source) {
        (Credential::None, _) => (None, None),
        (Credential::SignIn(_), _) => (Some("sign-in"), Some(settings.credentials.display().to_string())),
        (Credential::Key(_), Some(KeySource::File(path))) => (Some("API key"), Some(path.display().to_string())),
        (Credential::Key(_), Some(KeySource::Given) | None) => {
            (Some("API key"), Some("--api-key or GRAB_API_KEY".to_owned()))
        }
    };
    if !json {
        output::line(&format!("{:12} {}", "service", api.base()))?;
        let used = credential.zip(source.as_ref()).map(|(credential, source)| format!("{credential} from {source}"));
        output::line(&format!("{:12} {}", "credential", used.as_deref().unwrap_or("none")))?;
    }
    let scope = api.credential().scope().await;
    if let Some(scope) = scope.as_ref().filter(|_| !json) {
        output::line(&format!("{:12} {scope}", "scope"))?;
    }
    if credential.is_none() {
        return Err(Failure::NotSignedIn);
    }
    let usage = api.call(Method::GET, "usage").send().await?.body;
    let (environment, credits) = (&usage["environment"], &usage["credits"]["total"]);
    if json {
        let status = json!({
            "base_url": api.base(),
            "credential": credential,
            "source": source,
            "scope": scope,
            "environment": environment,
            "credits": credits,
        });
        output::line(&status.to_string())?;
        return Ok(Exit::Done);
    }
    output::line(&format!("{:12} {}", "environment", environment.as_str().unwrap_or("-")))?;
    output::line(&format!("{:12} {credits}", "credits"))?;
    Ok(Exit::Done)
}
