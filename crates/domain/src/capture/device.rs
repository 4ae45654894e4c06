//! Devices that a page can be shown on.

use super::{Scale, Viewport};

/// The device that a page is shown on: one of a kind, or a certain model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of the models say it")]
pub enum Device {
    /// A window with a mouse.
    #[default]
    Desktop,
    /// A small touch screen.
    Phone,
    /// A large touch screen.
    Tablet,
    IphoneSe,
    Iphone13,
    Iphone15,
    Iphone16Pro,
    Iphone16ProMax,
    Pixel8,
    GalaxyS24,
    IpadMini,
    Ipad10,
    IpadPro13,
    Laptop13,
    Laptop14,
    Laptop15,
    Desktop900p,
    Desktop1080p,
}

/// What kind of screen a device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// A window with a mouse.
    Desktop,
    /// A small touch screen.
    Phone,
    /// A large touch screen.
    Tablet,
}

/// What the browser of a device says that it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceSystem {
    /// The system of the browser that captures.
    Own,
    /// Android, on this model. Empty: on any.
    Android {
        /// The name of the model in client hints.
        model: &'static str,
    },
    /// iOS or iPadOS.
    Apple,
}

impl Device {
    /// Every device.
    pub const ALL: [Self; 18] = [
        Self::Desktop,
        Self::Phone,
        Self::Tablet,
        Self::IphoneSe,
        Self::Iphone13,
        Self::Iphone15,
        Self::Iphone16Pro,
        Self::Iphone16ProMax,
        Self::Pixel8,
        Self::GalaxyS24,
        Self::IpadMini,
        Self::Ipad10,
        Self::IpadPro13,
        Self::Laptop13,
        Self::Laptop14,
        Self::Laptop15,
        Self::Desktop900p,
        Self::Desktop1080p,
    ];

    /// Its name in the APIs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Desktop => "desktop",
            Self::Phone => "phone",
            Self::Tablet => "tablet",
            Self::IphoneSe => "iphone-se",
            Self::Iphone13 => "iphone-13",
            Self::Iphone15 => "iphone-15",
            Self::Iphone16Pro => "iphone-16-pro",
            Self::Iphone16ProMax => "iphone-16-pro-max",
            Self::Pixel8 => "pixel-8",
            Self::GalaxyS24 => "galaxy-s24",
            Self::IpadMini => "ipad-mini",
            Self::Ipad10 => "ipad-10",
            Self::IpadPro13 => "ipad-pro-13",
            Self::Laptop13 => "laptop-13",
            Self::Laptop14 => "laptop-14",
            Self::Laptop15 => "laptop-15",
            Self::Desktop900p => "desktop-900p",
            Self::Desktop1080p => "desktop-1080p",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|device| device.as_str() == name)
    }

    /// Its viewport and scale, for requests that do not set them.
    pub const fn defaults(self) -> (Viewport, Scale) {
        let (width, height, hundredths) = match self {
            Self::Desktop => return (Viewport::DEFAULT, Scale::ONE),
            Self::Phone | Self::Iphone13 => (390, 844, 300),
            Self::Tablet => (768, 1024, 200),
            Self::IphoneSe => (375, 667, 200),
            Self::Iphone15 => (393, 852, 300),
            Self::Iphone16Pro => (402, 874, 300),
            Self::Iphone16ProMax => (440, 956, 300),
            Self::Pixel8 => (412, 915, 263),
            Self::GalaxyS24 => (360, 780, 300),
            Self::IpadMini => (1133, 744, 200),
            Self::Ipad10 => (1180, 820, 200),
            Self::IpadPro13 => (1376, 1032, 200),
            Self::Laptop13 => (1440, 900, 200),
            Self::Laptop14 => (1366, 768, 100),
            Self::Laptop15 => (1536, 864, 125),
            Self::Desktop900p => (1600, 900, 100),
            Self::Desktop1080p => (1920, 1080, 100),
        };
        (Viewport { width, height }, Scale { hundredths })
    }

    /// The kind of its screen.
    pub const fn kind(self) -> DeviceKind {
        match self {
            Self::Desktop
            | Self::Laptop13
            | Self::Laptop14
            | Self::Laptop15
            | Self::Desktop900p
            | Self::Desktop1080p => DeviceKind::Desktop,
            Self::Phone
            | Self::IphoneSe
            | Self::Iphone13
            | Self::Iphone15
            | Self::Iphone16Pro
            | Self::Iphone16ProMax
            | Self::Pixel8
            | Self::GalaxyS24 => DeviceKind::Phone,
            Self::Tablet | Self::IpadMini | Self::Ipad10 | Self::IpadPro13 => DeviceKind::Tablet,
        }
    }

    /// Whether it has a touch screen, and pages are laid out as on one.
    pub const fn is_mobile(self) -> bool {
        match self.kind() {
            DeviceKind::Desktop => false,
            DeviceKind::Phone | DeviceKind::Tablet => true,
        }
    }

    /// What its browser says that it runs on.
    pub const fn system(self) -> DeviceSystem {
        match self {
            Self::Desktop
            | Self::Laptop13
            | Self::Laptop14
            | Self::Laptop15
            | Self::Desktop900p
            | Self::Desktop1080p => DeviceSystem::Own,
            Self::Phone | Self::Tablet => DeviceSystem::Android { model: "" },
            Self::Pixel8 => DeviceSystem::Android { model: "Pixel 8" },
            Self::GalaxyS24 => DeviceSystem::Android { model: "SM-S921B" },
            Self::IphoneSe
            | Self::Iphone13
            | Self::Iphone15
            | Self::Iphone16Pro
            | Self::Iphone16ProMax
            | Self::IpadMini
            | Self::Ipad10
            | Self::IpadPro13 => DeviceSystem::Apple,
        }
    }
}

#[cfg(test)]
mod tests {
    use grabd_options::Kind;

    use super::*;
    use crate::capture::{CaptureRequest, CaptureSpec};

    fn request(device: &str) -> CaptureRequest {
        let url = Some("https://example.com/".to_owned());
        CaptureRequest { url, device: Some(device.to_owned()), ..CaptureRequest::default() }
    }

    #[test]
    fn devices_are_those_of_the_table_and_within_its_bounds() {
        let Kind::Word(words) = grabd_options::find("device").unwrap().kind else { panic!("a word") };
        assert_eq!(words, Device::ALL.map(Device::as_str));
        for device in Device::ALL {
            let spec = CaptureSpec::parse(&request(device.as_str())).unwrap();
            let minimal = spec.to_minimal_request();
            assert_eq!((minimal.width, minimal.height, minimal.scale), (None, None, None), "{device:?}");
            // The defaults are accepted when they are given, too.
            assert_eq!(CaptureSpec::parse(&spec.to_request()).unwrap(), spec, "{device:?}");
            assert_eq!(spec.viewport.height() > spec.viewport.width(), device.is_mobile() && !is_on_its_side(device));
        }
    }

    fn is_on_its_side(device: Device) -> bool {
        device.kind() == DeviceKind::Tablet && device != Device::Tablet
    }

    #[test]
    fn given_members_win_over_those_of_the_device() {
        let given = CaptureRequest {
            width: Some(500),
            scale: Some(1.0),
            user_agent: Some("Bot".into()),
            ..request("iphone-15")
        };
        let spec = CaptureSpec::parse(&given).unwrap();
        assert_eq!((spec.viewport.width(), spec.viewport.height(), spec.scale), (500, 852, Scale::ONE));
        assert_eq!((spec.device, spec.appearance.user_agent.as_deref()), (Device::Iphone15, Some("Bot")));
    }

    #[test]
    fn unknown_device_is_refused_with_the_names_of_all() {
        let message = CaptureSpec::parse(&request("iphone-1")).unwrap_err().to_string();
        assert!(message.starts_with("`device` must be one of \"desktop\", \"phone\", \"tablet\", "), "{message}");
        assert!(message.ends_with("got \"iphone-1\"."), "{message}");
        assert!(Device::ALL.iter().all(|device| message.contains(&format!("\"{}\"", device.as_str()))), "{message}");
    }
}
