#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    grabd_domain::properties::address(data);
});
