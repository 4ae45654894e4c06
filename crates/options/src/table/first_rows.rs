//! The first options of the table, up to `freeze`. The others follow in `later_rows.rs`.

/// Declares the table of these rows and the later ones.
macro_rules! first_rows {
    ($dollar:tt) => {
        later_rows! { $dollar [
            /// Target address; required.
            url: String = {
                kind: Kind::Url,
                group: Group::Page,
                label: "URL",
                help: "Absolute http(s) URL of a public page. Private, loopback and link-local addresses are refused.",
                example: "\"https://example.com/\""
            }
            /// Width of the viewport in CSS pixels.
            width: i64 = {
                kind: Kind::Integer { min: 320, max: 1920, unit: "pixels" },
                default: "1280",
                default_of: "device",
                group: Group::Window,
                form: FormDetails { rank: 3, defaults: devices::WIDTHS, ..FORM },
                label: "Width",
                help: "Viewport width in CSS pixels.",
                example: "1440"
            }
            /// Height of the viewport in CSS pixels.
            height: i64 = {
                kind: Kind::Integer { min: 240, max: 1080, unit: "pixels" },
                default: "720",
                default_of: "device",
                group: Group::Window,
                form: FormDetails { rank: 4, defaults: devices::HEIGHTS, ..FORM },
                label: "Height",
                help: "Viewport height in CSS pixels. Ignored for the image height when full_page is true.",
                example: "900"
            }
            /// Format of the image.
            format: String = {
                kind: Kind::Word(&["png", "jpeg", "webp"]),
                default: "\"png\"",
                group: Group::Image,
                form: FormDetails { rank: 5, words: &["PNG", "JPEG", "WebP"], tag: "{}", ..FORM },
                label: "Format",
                help: "Format of the image.",
                example: "\"webp\""
            }
            /// Capture the whole page instead of the viewport.
            full_page: bool = {
                kind: Kind::Flag,
                default: "false",
                group: Group::Page,
                form: FormDetails { rank: 6, tag: "full page", ..FORM },
                label: "Full page",
                help: "Capture the whole page instead of the first screen.",
                description: "The grab then reports a height of 3240; the true size is in `image_height`.",
                example: "true"
            }
            /// Wait before the shot in milliseconds.
            delay_ms: i64 = {
                kind: Kind::Integer { min: 0, max: 10_000, unit: "milliseconds" },
                default: "0",
                group: Group::Timing,
                label: "Delay",
                brief: "Extra wait after load, in milliseconds.",
                help: "Extra wait after load, for late content or animations, in milliseconds.",
                example: "500"
            }
            /// Capture this one element.
            selector: String = {
                kind: Kind::Selector,
                group: Group::Page,
                form: FormDetails { if_empty: "The window", tag: "element", ..FORM },
                label: "Element",
                help: "CSS selector: capture only the first element that it matches.",
                description: "It may also begin with `text=` or `role=`, as in `steps`, but not lead into a frame. The capture fails, without \
                              charge, if nothing matches.",
                example: "\"main\""
            }
            /// Device pixels per CSS pixel.
            scale: f64 = {
                kind: Kind::Number { min: 1.0, max: 3.0 },
                default: "1",
                default_of: "device",
                group: Group::Image,
                form: FormDetails { defaults: devices::SCALES, tag: "{}×", ..FORM },
                label: "Scale",
                brief: "Image pixels per CSS pixel: 2 for a sharp image.",
                help: "Image pixels per CSS pixel, rounded to two decimals: 2 for a sharp image on high-resolution screens.",
                description: "The image may be at most 16384 pixels high and as large as a full page of the widest viewport; \
                              `truncated` says whether it was cut.",
                example: "2"
            }
            /// Which colour scheme the page is asked for.
            color_scheme: String = {
                kind: Kind::Word(&["light", "dark"]),
                default: "\"light\"",
                group: Group::Appearance,
                form: FormDetails { rank: 2, label: "Dark mode", words: &["Off", "On"], tag: "dark", ..FORM },
                label: "Color scheme",
                help: "Ask the page for its light or dark design.",
                example: "\"dark\""
            }
            /// Ask the page for less motion.
            reduced_motion: bool = {
                kind: Kind::Flag,
                default: "false",
                group: Group::Appearance,
                label: "Reduced motion",
                help: "Ask the page to leave out animations.",
                example: "true"
            }
            /// Which media type the page is laid out for.
            media: String = {
                kind: Kind::Word(&["screen", "print"]),
                default: "\"screen\"",
                group: Group::Appearance,
                form: FormDetails { words: &["Screen", "Print"], tag: "print", ..FORM },
                label: "Media",
                help: "Use the styles for screens or for printing.",
                example: "\"print\""
            }
            /// Language tag of the visitor.
            locale: String = {
                kind: Kind::Locale,
                group: Group::Appearance,
                form: FormDetails { tag: "{}", ..FORM },
                label: "Locale",
                brief: "Language tag of the visitor.",
                help: "Language of the visitor: for Accept-Language, dates and numbers.",
                example: "\"de-AT\""
            }
            /// Time zone of the visitor.
            timezone: String = {
                kind: Kind::TimeZone,
                group: Group::Appearance,
                label: "Time zone",
                help: "Time zone of the visitor.",
                example: "\"Europe/Vienna\""
            }
            /// What the browser calls itself.
            user_agent: String = {
                kind: Kind::Text { max: 512, is_multiline: false },
                group: Group::Appearance,
                form: FormDetails { if_empty: "That of the device", ..FORM },
                label: "User agent",
                help: "Replaces the User-Agent of the browser.",
                example: "\"ExampleBot/1.0 (+https://example.com/bot)\""
            }
            /// Wait until this element is visible.
            wait_for: String = {
                kind: Kind::Selector,
                group: Group::Timing,
                label: "Wait for",
                help: "Wait until an element that matches this CSS selector is visible.",
                description: "All selectors of `steps` are accepted. The capture fails, without charge, if none becomes visible in time.",
                example: "\"#chart svg\""
            }
            /// Wait until this element is gone.
            wait_for_gone: String = {
                kind: Kind::Selector,
                group: Group::Timing,
                label: "Wait until gone",
                help: "Wait until no element that matches this CSS selector is visible.",
                description: "It may also begin with `text=` or `role=`, as in `steps`. The capture fails, without charge, if one stays \
                              visible.",
                example: "\".spinner\""
            }
            /// Elements that are made invisible.
            hide: Vec<String> = {
                kind: Kind::Selectors { max: 20 },
                group: Group::Changes,
                label: "Hide",
                help: "Make elements that match these CSS selectors invisible. Their space stays empty.",
                example: "[\".chat-widget\"]"
            }
            /// Elements that are taken out of the layout.
            remove: Vec<String> = {
                kind: Kind::Selectors { max: 20 },
                group: Group::Changes,
                label: "Remove",
                help: "Take elements that match these CSS selectors out of the layout.",
                example: "[\"#newsletter\"]"
            }
            /// Styles that are added to the page.
            css: String = {
                kind: Kind::Text { max: 16_384, is_multiline: true },
                group: Group::Changes,
                label: "CSS",
                help: "Styles that are added to the page.",
                description: "Imports of other style sheets are ignored.",
                example: "\"body { font-size: 20px }\""
            }
            /// Quality of a JPEG or WebP image.
            quality: i64 = {
                kind: Kind::Integer { min: 1, max: 100, unit: "percent" },
                group: Group::Image,
                form: FormDetails { if_empty: "80 for JPEG", ..FORM },
                label: "Quality",
                help: "Quality of a JPEG or WebP image.",
                description: "Without it, JPEG has 80. Not for PNG, which is lossless.",
                example: "90"
            }
            /// Leave out the white background of the page.
            transparent: bool = {
                kind: Kind::Flag,
                default: "false",
                group: Group::Image,
                form: FormDetails { tag: "transparent", ..FORM },
                label: "Transparent",
                brief: "Leave out the browser's white background.",
                help: "Leave out the browser's white background, so that pages without a background of their own are transparent.",
                description: "Not for JPEG, which has no transparency.",
                example: "true"
            }
            /// Space around the element.
            padding: i64 = {
                kind: Kind::Integer { min: 0, max: 200, unit: "pixels" },
                group: Group::Image,
                form: FormDetails { if_empty: "0", ..FORM },
                label: "Padding",
                help: "Space around the captured element, in CSS pixels.",
                requires: "selector",
                example: "16"
            }
            /// Height limit of a full page.
            max_height: i64 = {
                kind: Kind::Integer { min: 240, max: 16_384, unit: "pixels" },
                group: Group::Image,
                form: FormDetails { if_empty: "No limit", ..FORM },
                label: "Maximum height",
                help: "Cut a full page at this height, in CSS pixels.",
                description: "`truncated` says whether it was cut.",
                requires: "full_page",
                example: "4000"
            }
            /// The device that the page is shown on.
            device: String = {
                kind: Kind::Word(devices::NAMES),
                default: "\"desktop\"",
                group: Group::Window,
                form: FormDetails { rank: 1, words: devices::LABELS, tag: "{}", ..FORM },
                label: "Device",
                help: "Show the page as on a `phone`, a `tablet`, or a model such as `iphone-15`.",
                description: "A phone has 390 x 844 pixels and scale 3, a tablet 768 x 1024 and scale 2, both with touch and the \
                              User-Agent of an Android browser. Models have sizes, scales and User-Agents of their own, which \
                              docs/guide/PICTURE.md lists. `width`, `height`, `scale` and `user_agent` win over that.",
                example: "\"phone\""
            }
            /// Types of requests that are blocked.
            block_types: Vec<String> = {
                kind: Kind::Words(&["image", "media", "font", "stylesheet", "script", "xhr", "frame", "websocket"]),
                group: Group::Network,
                form: FormDetails {
                    words: &["Images", "Media", "Fonts", "Styles", "Scripts", "Data of scripts", "Frames", "WebSockets"], ..FORM
                },
                label: "Block types",
                help: "Load nothing of these types.",
                description: "The document itself is always loaded. `xhr` is data that scripts request, `frame` the documents of \
                              iframes. Scripts and WebSockets of workers, and what service workers load, are not blocked.",
                example: "[\"media\", \"font\"]"
            }
            /// URLs that are blocked.
            block_urls: Vec<String> = {
                kind: Kind::Patterns { max: 50 },
                group: Group::Network,
                label: "Block URLs",
                help: "Load nothing from URLs that match these patterns.",
                description: "A pattern stands for the whole URL, and `*` in it for any characters. The document itself is always \
                              loaded. WebSockets, and what service workers load, are not blocked.",
                example: "[\"https://ads.example.com/*\", \"*.mp4\"]"
            }
            /// Request headers.
            headers: Secret<Object> = {
                kind: Kind::Headers { max: 32, max_chars: 4096 },
                group: Group::Network,
                label: "Headers",
                brief: "Headers of the requests to the origin of the URL.",
                help: "Headers of the requests to the origin of the URL: the same scheme, host and port.",
                description: "They are not sent to other origins, not even after a redirect there, and not for requests that pages \
                              of other origins make. The value is kept encrypted, deleted when the grab has ended, and never \
                              shown.",
                example: "{\"Accept-Language\": \"de\", \"X-Api-Version\": \"2\"}",
                is_secret: true
            }
            /// Cookies of the grab.
            cookies: Secret<Vec<Object>> = {
                kind: Kind::Objects { max: 64, members: COOKIE },
                group: Group::Network,
                label: "Cookies",
                help: "Cookies that the browser has from the beginning.",
                description: "Without `domain`, a cookie is for the host of the URL only; with it, also for subdomains. The domain \
                              must belong to the same registered domain as the URL. `expires` is in seconds since 1970. The value \
                              is kept encrypted, deleted when the grab has ended, and never shown.",
                example: "[{\"name\": \"session\", \"value\": \"6f2a\"}]",
                is_secret: true
            }
            /// User name and password for HTTP.
            basic_auth: Secret<Object> = {
                kind: Kind::Object { members: BASIC_AUTH, separator: ':' },
                group: Group::Network,
                label: "Basic authentication",
                brief: "Sent to the origin of the URL.",
                help: "User name and password, which are sent to the origin of the URL.",
                description: "Not together with a header `Authorization`. The value is kept encrypted, deleted when the grab has \
                              ended, and never shown.",
                example: "{\"username\": \"guest\", \"password\": \"welcome\"}",
                is_secret: true
            }
            /// Where the visitor is.
            geolocation: Object = {
                kind: Kind::Object { members: GEOLOCATION, separator: ',' },
                group: Group::Appearance,
                label: "Geolocation",
                brief: "Position of the visitor.",
                help: "Position of the visitor, which the page may then read without asking.",
                description: "Pages can read it over HTTPS only. It does not change the address that requests come from.",
                example: "{\"latitude\": 48.2082, \"longitude\": 16.3738}"
            }
            /// Run the page's scripts.
            javascript: bool = {
                kind: Kind::Flag,
                default: "true",
                group: Group::Page,
                form: FormDetails { tag: "no scripts", ..FORM },
                label: "JavaScript",
                help: "Run the scripts of the page.",
                description: "Without them, the page is shown as to visitors who have turned JavaScript off.",
                example: "false"
            }
            /// What is waited for before the shot.
            wait_until: String = {
                kind: Kind::Word(&["auto", "dom", "load", "idle"]),
                default: "\"auto\"",
                group: Group::Timing,
                form: FormDetails { words: &["Settled", "Parsed", "Loaded", "Idle"], ..FORM },
                label: "Wait until",
                brief: "`auto`: settled; `dom`: parsed; `load`: the load event; `idle`: hardly any open requests.",
                help: "What is waited for: `auto` until the page has settled, `dom` until it is parsed, `load` until its load \
                       event, `idle` until at most 2 requests have been open for 500 ms.",
                description: "With `dom` and `load`, the image may lack what the page loads later. Every wait ends with the \
                              time of the capture.",
                example: "\"load\""
            }
            /// How long the capture may take in milliseconds.
            timeout_ms: i64 = {
                kind: Kind::Integer { min: 1000, max: 60_000, unit: "milliseconds" },
                default: "25000",
                group: Group::Timing,
                label: "Time limit",
                brief: "Time limit in milliseconds; more than 25000 only with async.",
                help: "How long the capture may take in the browser, in milliseconds; more than 25000 only asynchronously.",
                description: "A page that is still loading near the end is captured as it is. The capture fails, without \
                              charge, if there is no page by then.",
                example: "10000"
            }
            /// Statuses of the page with which the capture fails.
            fail_on_status: Vec<String> = {
                kind: Kind::Statuses { max: 32 },
                group: Group::Page,
                label: "Fail on status",
                brief: "Fail if the HTTP status of the page is one of these, such as 404 or 5xx.",
                help: "Fail, without charge, if the HTTP status of the page is one of these.",
                description: "In gRPC, all of them are strings. A status that is listed by its number fails even with \
                              `allow_blocked`.",
                example: "[\"4xx\", \"5xx\"]"
            }
            /// Capture pages that deny access.
            allow_blocked: bool = {
                kind: Kind::Flag,
                default: "false",
                group: Group::Page,
                label: "Allow blocked pages",
                brief: "Capture pages that deny access, and bot challenges.",
                help: "Capture pages that deny access, with status 401, 403, 407, 429 or 503, and bot challenges.",
                description: "Such a grab is done and charged. Without it, the capture fails without charge.",
                example: "true"
            }
            /// Capture this part of the page.
            clip: Rectangle = {
                kind: Kind::Rectangle,
                group: Group::Page,
                form: FormDetails { if_empty: "The window", tag: "area", ..FORM },
                label: "Clip",
                help: "Capture this rectangle of the page, in CSS pixels from its top left corner.",
                description: "The part beyond the edge of the page is left out. The capture fails, without charge, if the whole \
                              rectangle is beyond it. Forms and the command line take `x,y,width,height`.",
                example: "{\"x\": 0, \"y\": 600, \"width\": 800, \"height\": 600}",
                excludes: &["selector", "full_page"]
            }
            /// Largest width of the image.
            fit_width: i64 = {
                kind: Kind::Integer { min: 16, max: 8000, unit: "pixels" },
                group: Group::Image,
                form: FormDetails { if_empty: "Not scaled", ..FORM },
                label: "Fit width",
                help: "Scale the image down to at most this width, in image pixels. It is never enlarged.",
                example: "600"
            }
            /// Largest height of the image.
            fit_height: i64 = {
                kind: Kind::Integer { min: 16, max: 8000, unit: "pixels" },
                group: Group::Image,
                form: FormDetails { if_empty: "Not scaled", ..FORM },
                label: "Fit height",
                help: "Scale the image down to at most this height, in image pixels. It is never enlarged.",
                example: "400"
            }
            /// Elements that are clicked.
            click: Vec<String> = {
                kind: Kind::Selectors { max: 10 },
                group: Group::Changes,
                label: "Click",
                brief: "Click the first match of each of these CSS selectors in turn.",
                help: "Click the first element that matches each of these CSS selectors, one after the other.",
                description: "They may also begin with `text=` or `role=`, as in `steps`. Each click is followed by a wait until the \
                              page has settled, and may lead to another page. The capture fails, without charge, if nothing visible \
                              matches.",
                example: "[\"#accept\", \".tab:nth-child(2)\"]"
            }
            /// A script that is run in the page.
            script: String = {
                kind: Kind::Text { max: 16_384, is_multiline: true },
                group: Group::Changes,
                label: "Script",
                brief: "JavaScript to run before the image, as the body of an async function.",
                help: "JavaScript that is run in the page before the image is taken, as the body of an async function.",
                description: "It is waited for, for up to 5 seconds. The capture fails, without charge, if it throws or takes \
                              longer. Not without `javascript`.",
                example: "\"document.querySelector('details').open = true\"",
                link_bar: Some(LinkBar::Published)
            }
            /// Stop everything that moves.
            freeze: bool = {
                kind: Kind::Flag,
                default: "false",
                group: Group::Changes,
                label: "Freeze",
                brief: "Stop animations, carets, videos and animated images.",
                help: "Stop animations, transitions, carets, videos and animated images, so that repeated captures are equal.",
                description: "Finite animations are shown at their end, all else at its beginning. The page is asked for less \
                              motion. Images in style sheets, frames of other origins and what scripts draw are not stopped.",
                example: "true"
            }
        ] }
    };
}
