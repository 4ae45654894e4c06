//! The devices that a page can be shown on, and what they bring. Sizes and scales are those of the domain, which a test of
//! the domain compares.

/// Declares the names of devices, their labels, and the defaults that they bring.
macro_rules! devices {
    ($($name:literal, $label:literal, $width:literal x $height:literal, $scale:literal;)*) => {
        /// Their names in the APIs.
        pub(super) const NAMES: &[&str] = &[$($name),*];
        /// What they are called in forms.
        pub(super) const LABELS: &[&str] = &[$($label),*];
        /// Widths of their windows.
        pub(super) const WIDTHS: &[(&str, &str)] = &[$(($name, $width)),*];
        /// Heights of their windows.
        pub(super) const HEIGHTS: &[(&str, &str)] = &[$(($name, $height)),*];
        /// Their image pixels per CSS pixel.
        pub(super) const SCALES: &[(&str, &str)] = &[$(($name, $scale)),*];
    };
}

// A window is at most 1080 pixels high: tablets that are longer lie on their side.
devices! {
    "desktop", "Desktop", "1280" x "720", "1";
    "phone", "Phone", "390" x "844", "3";
    "tablet", "Tablet", "768" x "1024", "2";
    "iphone-se", "iPhone SE", "375" x "667", "2";
    "iphone-13", "iPhone 13", "390" x "844", "3";
    "iphone-15", "iPhone 15", "393" x "852", "3";
    "iphone-16-pro", "iPhone 16 Pro", "402" x "874", "3";
    "iphone-16-pro-max", "iPhone 16 Pro Max", "440" x "956", "3";
    "pixel-8", "Pixel 8", "412" x "915", "2.63";
    "galaxy-s24", "Galaxy S24", "360" x "780", "3";
    "ipad-mini", "iPad mini", "1133" x "744", "2";
    "ipad-10", "iPad 10", "1180" x "820", "2";
    "ipad-pro-13", "iPad Pro 13", "1376" x "1032", "2";
    "laptop-13", "Laptop 13 inches", "1440" x "900", "2";
    "laptop-14", "Laptop 14 inches", "1366" x "768", "1";
    "laptop-15", "Laptop 15 inches", "1536" x "864", "1.25";
    "desktop-900p", "Desktop 1600 × 900", "1600" x "900", "1";
    "desktop-1080p", "Desktop 1920 × 1080", "1920" x "1080", "1";
}
