//! What the browser calls itself.

use chromiumoxide::cdp::browser_protocol::emulation::{
    SetUserAgentOverrideParams, UserAgentBrandVersion, UserAgentMetadata,
};
use grabd_domain::capture::{Device, DeviceKind, DeviceSystem};

/// A brand that means nothing, as all browsers send one: sites must not depend on the exact list.
const GREASE: (&str, &str) = ("Not.A/Brand", "99");

/// The version of iOS and iPadOS in User-Agents.
const APPLE_VERSION: (&str, &str) = ("18_6", "18.6");

/// The User-Agent and the client hints of a browser: those of the same Chromium with a window. Nothing else about a
/// page's view of the browser is changed, so that sites can recognize it as automated.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    user_agent: String,
    /// The full version, such as `156.0.8000.1`. Empty if it is unknown.
    version: String,
    /// What the operator adds to the User-Agent. May be empty.
    token: String,
}

impl Identity {
    /// The identity of a browser with this product and User-Agent, as it reports them. `token` is appended, unless it is
    /// empty.
    pub(crate) fn new(product: &str, user_agent: &str, token: &str) -> Self {
        let version = product.split_once('/').map(|(_, version)| version).unwrap_or_default();
        let user_agent = reduced(&user_agent.replace("HeadlessChrome/", "Chrome/"));
        let user_agent = if token.is_empty() { user_agent } else { format!("{user_agent} {token}") };
        Self { user_agent, version: version.to_owned(), token: token.to_owned() }
    }

    /// The browser and its version, if that is known.
    pub(crate) fn browser(&self) -> Option<String> {
        (!self.version.is_empty()).then(|| format!("Chromium {}", self.version))
    }

    /// The command that sets the User-Agent and the client hints of a page.
    pub(crate) fn on(&self, device: Device) -> SetUserAgentOverrideParams {
        let accept_language = Some(accept_language(None));
        match device.system() {
            DeviceSystem::Own => SetUserAgentOverrideParams {
                user_agent_metadata: self.client_hints(device.kind(), ""),
                accept_language,
                ..SetUserAgentOverrideParams::new(self.user_agent.clone())
            },
            DeviceSystem::Android { model } => SetUserAgentOverrideParams {
                user_agent_metadata: self.client_hints(device.kind(), model),
                accept_language,
                ..SetUserAgentOverrideParams::new(on_android(&self.user_agent, device.kind()))
            },
            // Their browsers send no client hints.
            DeviceSystem::Apple => {
                let (user_agent, platform) = on_apple(&self.token, device.kind());
                SetUserAgentOverrideParams {
                    accept_language,
                    platform: Some(platform.to_owned()),
                    ..SetUserAgentOverrideParams::new(user_agent)
                }
            }
        }
    }

    /// The client hints. None without a version: then the browser sends none.
    fn client_hints(&self, kind: DeviceKind, model: &str) -> Option<UserAgentMetadata> {
        let major = self.version.split('.').next().filter(|major| !major.is_empty())?;
        let brands = |version: &str, grease: &str| {
            Some(vec![UserAgentBrandVersion::new("Chromium", version), UserAgentBrandVersion::new(GREASE.0, grease)])
        };
        let is_desktop = kind == DeviceKind::Desktop;
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "x86",
            "aarch64" => "arm",
            _ => "",
        };
        Some(UserAgentMetadata {
            brands: brands(major, GREASE.1),
            full_version_list: brands(&self.version, &format!("{}.0.0.0", GREASE.1)),
            platform: if is_desktop { "Linux" } else { "Android" }.to_owned(),
            platform_version: if is_desktop { "" } else { "10" }.to_owned(),
            architecture: if is_desktop { architecture } else { "" }.to_owned(),
            model: model.to_owned(),
            mobile: kind == DeviceKind::Phone,
            bitness: Some(if is_desktop { "64" } else { "" }.to_owned()),
            wow64: Some(false),
            form_factors: None,
        })
    }
}

/// The value of `navigator.languages` and `Accept-Language` for a locale, `en-US` if there is none. The browser adds the
/// weights of the header.
pub(super) fn accept_language(locale: Option<&str>) -> String {
    let locale = locale.unwrap_or("en-US");
    match locale.split_once('-') {
        Some((language, _)) => format!("{locale},{language}"),
        None => locale.to_owned(),
    }
}

/// The User-Agent with the major version only, as browsers send it. Client hints have the whole one.
fn reduced(user_agent: &str) -> String {
    let Some((before, after)) = user_agent.split_once("Chrome/") else { return user_agent.to_owned() };
    let end = after.find(' ').unwrap_or(after.len());
    let (version, rest) = after.split_at(end);
    let major = version.split('.').next().unwrap_or(version);
    format!("{before}Chrome/{major}.0.0.0{rest}")
}

/// The User-Agent of Safari on an iPhone or an iPad, and the name of its platform.
fn on_apple(token: &str, kind: DeviceKind) -> (String, &'static str) {
    let (system, version) = APPLE_VERSION;
    let (platform, system) = match kind {
        DeviceKind::Tablet => ("iPad", format!("CPU OS {system}")),
        DeviceKind::Phone | DeviceKind::Desktop => ("iPhone", format!("CPU iPhone OS {system}")),
    };
    let user_agent = format!(
        "Mozilla/5.0 ({platform}; {system} like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/{version} \
         Mobile/15E148 Safari/604.1"
    );
    (if token.is_empty() { user_agent } else { format!("{user_agent} {token}") }, platform)
}

/// The User-Agent of this browser version on an Android device. Browsers on tablets leave out `Mobile`.
fn on_android(user_agent: &str, kind: DeviceKind) -> String {
    let Some((version, rest)) = user_agent.split_once("Chrome/").and_then(|(_, rest)| rest.split_once(' ')) else {
        return user_agent.to_owned();
    };
    let mobile = match kind {
        DeviceKind::Desktop => return user_agent.to_owned(),
        DeviceKind::Phone => "Mobile ",
        DeviceKind::Tablet => "",
    };
    format!("Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{version} {mobile}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str =
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/156.0.0.0 Safari/537.36";

    #[test]
    fn user_agent_of_a_device_keeps_the_version_of_the_browser() {
        let android = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0";
        assert_eq!(on_android(OWN, DeviceKind::Desktop), OWN);
        assert_eq!(on_android(OWN, DeviceKind::Phone), format!("{android} Mobile Safari/537.36"));
        assert_eq!(on_android(OWN, DeviceKind::Tablet), format!("{android} Safari/537.36"));
        assert_eq!(on_android("unknown", DeviceKind::Phone), "unknown");
    }

    #[test]
    fn models_have_the_user_agents_of_their_browsers() {
        let identity = Identity::new("HeadlessChrome/156.0.8000.1", OWN, "grabd");
        let pixel = identity.on(Device::Pixel8);
        assert!(pixel.user_agent.contains("Android 10; K") && pixel.user_agent.ends_with("Safari/537.36 grabd"));
        let hints = pixel.user_agent_metadata.unwrap();
        assert_eq!((hints.model.as_str(), hints.mobile), ("Pixel 8", true));
        let phone = identity.on(Device::Iphone15);
        assert_eq!(
            phone.user_agent,
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 \
             Mobile/15E148 Safari/604.1 grabd"
        );
        assert_eq!((phone.platform.as_deref(), phone.user_agent_metadata), (Some("iPhone"), None));
        assert!(identity.on(Device::Ipad10).user_agent.starts_with("Mozilla/5.0 (iPad; CPU OS 18_6 like Mac OS X) "));
        assert_eq!(identity.on(Device::Laptop13), identity.on(Device::Desktop));
    }

    #[test]
    fn user_agent_has_the_major_version_only() {
        assert_eq!(
            reduced("Mozilla/5.0 Chrome/156.0.8078.73 Safari/537.36"),
            "Mozilla/5.0 Chrome/156.0.0.0 Safari/537.36"
        );
        assert_eq!(reduced("Chrome/156.1"), "Chrome/156.0.0.0");
        assert_eq!(reduced("Other/1"), "Other/1");
    }

    #[test]
    fn languages_end_with_that_of_any_region() {
        for (locale, expected) in [(None, "en-US,en"), (Some("de-DE"), "de-DE,de"), (Some("fr"), "fr")] {
            assert_eq!(accept_language(locale), expected);
        }
    }

    #[test]
    fn identity_is_that_of_a_browser_with_a_window_and_the_token() {
        let of = |token| Identity::new("HeadlessChrome/156.0.8000.1", OWN, token).on(Device::Desktop);
        assert_eq!(of("").user_agent, OWN.replace("Headless", ""));
        assert!(of("grabd (+https://a.example)").user_agent.ends_with(" Safari/537.36 grabd (+https://a.example)"));
        let hints = of("").user_agent_metadata.unwrap();
        assert_eq!(hints.brands.unwrap()[0], UserAgentBrandVersion::new("Chromium", "156"));
        assert_eq!(hints.full_version_list.unwrap()[0].version, "156.0.8000.1");
        let unknown = Identity::new("", "Other/1", "").on(Device::Phone);
        assert_eq!((unknown.user_agent.as_str(), unknown.user_agent_metadata), ("Other/1", None));
    }
}
