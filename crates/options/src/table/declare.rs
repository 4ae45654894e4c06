//! The macro that declares the table.

/// Declares the table, the request with a field for each option, and the macro that lists the options for other crates.
macro_rules! options {
    ($dollar:tt $($(#[$doc:meta])* $name:ident: $type:ty = { $($row:tt)* })*) => {
        /// Every option, in the order in which they are checked, stored and shown.
        pub static TABLE: &[CaptureOption] =
            &[$(CaptureOption { name: stringify!($name), $($row)*, ..OPTION }),*];

        /// A request as it came over a wire: nothing is checked yet.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct CaptureRequest {
            $($(#[$doc])* pub $name: Option<$type>,)*
            /// Fields whose value had the wrong type on the wire it came by, with the value seen there.
            pub unparsed: Vec<(String, String)>,
            /// Names of members that are no options, and are ignored.
            pub unknown: Vec<String>,
        }

        impl CaptureRequest {
            /// The value of an option. None if it was left out, or if there is no such option.
            pub fn get(&self, name: &str) -> Option<Value> {
                match name {
                    $(stringify!($name) => self.$name.as_ref().map(OptionType::to_value),)*
                    _ => None,
                }
            }

            /// The names of the options that were given.
            pub fn given(&self) -> Vec<&'static str> {
                let is_given = [$((stringify!($name), self.$name.is_some())),*];
                is_given.into_iter().filter_map(|(name, is_given)| is_given.then_some(name)).collect()
            }

            /// Sets an option. Returns false if there is no such option, or if it has another type.
            pub fn set(&mut self, name: &str, value: Value) -> bool {
                match name {
                    $(stringify!($name) => {
                        self.$name = <$type as OptionType>::from_value(value);
                        self.$name.is_some()
                    })*
                    _ => false,
                }
            }
        }

        /// Calls a macro with the name and the type of every option: `callback! { url: String, width: i64, … }`.
        #[macro_export]
        macro_rules! for_each_option {
            ($dollar callback:ident) => {
                $dollar callback! { $($name: $type),* }
            };
        }
    };
}
