//! Prints the reference of all options, for `docs/OPTIONS.md`.

fn main() -> std::io::Result<()> {
    std::io::Write::write_all(&mut std::io::stdout(), grabd_options::reference::markdown().as_bytes())
}
